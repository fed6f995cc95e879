/** Sample messages of a shard. */

import type { ShardMessage } from '../../../actors/shard/messages.js';
import type { ShardState } from '../../../actors/shard/state.js';
import { startShard, stepShard } from '../../../actors/shard/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { sampleConfig } from '../../actors/samples.js';
import type { Machine } from '../walk.js';

const BROKEN: ErrorFacts = { code: 'storage', detail: 'damaged' };

const MESSAGES: readonly ShardMessage[] = [
  { kind: 'replicaOpened' },
  { kind: 'replicaFailed', error: BROKEN },
  { kind: 'replicaStopped', error: BROKEN },
  { kind: 'configure', config: sampleConfig(), replyTo: 1 },
  { kind: 'close' },
  { kind: 'replicaClosed' },
];

export const SHARD: Machine<ShardState, ShardMessage> = { step: stepShard, starts: [startShard().state], inputs: () => MESSAGES };

/** Sample messages of a replica. */

import type { ReplicaMessage } from '../../../actors/replica/messages.js';
import type { ReplicaLife } from '../../../actors/replica/state.js';
import { startReplica, stepReplica } from '../../../actors/replica/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { indexedSegment, sampleConfig, sampleStats } from '../../actors/samples.js';
import type { Machine } from '../walk.js';

const CONFIG = sampleConfig();
const BROKEN: ErrorFacts = { code: 'storage', detail: 'damaged' };

const MESSAGES: readonly ReplicaMessage[] = [
  { kind: 'opened', stats: sampleStats() },
  { kind: 'openFailed', error: BROKEN },
  { kind: 'failed', error: BROKEN },
  { kind: 'retry' },
  { kind: 'stats', stats: sampleStats() },
  { kind: 'configure', config: CONFIG, replyTo: 1 },
  {
    kind: 'indexCreated',
    answer: { replyTo: 4, written: { numbers: [], status: 'completed' } },
    stats: sampleStats([indexedSegment({ missingFields: ['color'] })]),
  },
  { kind: 'optimizerStopped', error: BROKEN },
  { kind: 'install', staged: '/staged', replyTo: 5 },
  { kind: 'close' },
  { kind: 'closed' },
];

export const REPLICA: Machine<ReplicaLife, ReplicaMessage> = {
  step: stepReplica,
  starts: [startReplica(CONFIG).state],
  inputs: () => MESSAGES,
};

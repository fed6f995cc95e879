/** Sample messages of a collection. */

import type { CollectionMessage } from '../../../actors/collection/messages.js';
import type { CollectionState } from '../../../actors/collection/state.js';
import { startCollection, stepCollection } from '../../../actors/collection/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { sampleConfig } from '../../actors/samples.js';
import type { Machine } from '../walk.js';

const CONFIG = sampleConfig();
const BROKEN: ErrorFacts = { code: 'storage', detail: 'damaged' };
/** Shard 0 goes, shard 1 comes. */
const BELONGING = { clusterId: 'c', peerId: 1, uid: 1, revision: 1, index: 1, shards: [1] };

const MESSAGES: readonly CollectionMessage[] = [
  { kind: 'loaded', config: CONFIG, belonging: null },
  { kind: 'loaded', config: CONFIG, belonging: { ...BELONGING, shards: [] } },
  { kind: 'loadFailed', error: BROKEN },
  { kind: 'createFailed', error: BROKEN },
  ...[0, 1].flatMap((shardId): CollectionMessage[] => [
    { kind: 'shardOpened', shardId },
    { kind: 'shardFailed', shardId, error: BROKEN },
    { kind: 'shardClosed', shardId },
    { kind: 'shardStopped', shardId, error: BROKEN },
  ]),
  { kind: 'update', change: (config) => config, replyTo: 1 },
  { kind: 'saved', config: CONFIG, replyTo: 1 },
  { kind: 'saveFailed', error: BROKEN, replyTo: 1 },
  { kind: 'reshape', config: CONFIG, belonging: BELONGING, replyTo: 2 },
  { kind: 'shardsRemoved' },
  { kind: 'reshapeSaved' },
  { kind: 'reshapeFailed', error: BROKEN },
  { kind: 'delete', replyTo: 3 },
  { kind: 'removed' },
  { kind: 'removeFailed', error: BROKEN },
  { kind: 'close' },
];

export const COLLECTION: Machine<CollectionState, CollectionMessage> = {
  step: stepCollection,
  starts: [startCollection(null).state, startCollection({ config: CONFIG, belonging: null }).state],
  inputs: () => MESSAGES,
};

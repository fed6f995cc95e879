/** Sample messages of the node: one that has a collection on its disk, and one without. */

import type { NodeMessage } from '../../../actors/node/messages.js';
import type { NodeState } from '../../../actors/node/state.js';
import { startNodeActor, stepNode } from '../../../actors/node/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { sampleConfig } from '../../actors/samples.js';
import type { Machine } from '../walk.js';

const BROKEN: ErrorFacts = { code: 'storage', detail: 'damaged' };
const CONFIG = sampleConfig();
const NOTHING_DESIRED = { index: 1, peerId: 1, clusterId: 'c', collections: new Map(), aliases: new Map() };

const MESSAGES: readonly NodeMessage[] = [
  { kind: 'scanned', folders: ['a'], holdings: null, aliases: new Map() },
  { kind: 'scanFailed', error: BROKEN },
  { kind: 'awaitReady', replyTo: 1 },
  { kind: 'create', name: 'b', folder: 'b', config: CONFIG, replyTo: 2 },
  { kind: 'delete', folder: 'a', replyTo: 3 },
  { kind: 'changeAliases', actions: [], replyTo: 4 },
  { kind: 'aliasesSaved' },
  { kind: 'aliasesNotSaved', error: BROKEN },
  { kind: 'collectionOpened', folder: 'a' },
  { kind: 'collectionDied', folder: 'a', error: BROKEN, shards: null },
  { kind: 'createFailed', folder: 'b', error: BROKEN },
  { kind: 'collectionDeleted', folder: 'a' },
  { kind: 'collectionClosed', folder: 'a' },
  { kind: 'desire', desired: NOTHING_DESIRED },
  { kind: 'adopt', adoption: new Map(), replyTo: 5 },
  { kind: 'reshaped', folder: 'a' },
  { kind: 'reshapeFailed', folder: 'a', error: BROKEN },
  { kind: 'takenAway', folder: 'a' },
  { kind: 'takeAwayFailed', folder: 'a', error: BROKEN },
  { kind: 'retry', folder: 'a' },
  { kind: 'tellNow' },
  { kind: 'consensusGaveUp', error: BROKEN },
  { kind: 'transfersGaveUp', error: BROKEN },
  { kind: 'collectionGaveUp', folder: 'a', error: BROKEN },
  { kind: 'close', replyTo: 6 },
];

export const NODE: Machine<NodeState, NodeMessage> = {
  step: stepNode,
  starts: [startNodeActor().state],
  // Callers add up: one of each kind is enough.
  inputs: (state) => MESSAGES.filter(({ kind }) => kind !== 'awaitReady' || !('waiting' in state) || state.waiting.length === 0),
};

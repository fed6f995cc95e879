/** The step of the node: states × messages. */

import { decide, ignore, type Row, type Table } from '../../protocols/machine.js';
import { become } from '../runtime/behaviour.js';
import { carryOn, inCluster } from './carry-out.js';
import type { NodeEffect, NodeMessage } from './messages.js';
import {
  adopt,
  answerReady,
  becomeFailed,
  close,
  closeNow,
  closeUndeleted,
  createIfNew,
  deleteWithAliases,
  dropAliasChange,
  endAliasChange,
  loseConsensus,
  loseTransfers,
  type NodeStep,
  noteAbandoned,
  noteDied,
  noteGone,
  noteNotTaken,
  noteOpened,
  noteTakenAway,
  openAll,
  queueAliasChange,
  refuseRequest,
  type Serving,
  takeAliases,
  takeDesired,
  tryAgain,
  waitForReady,
} from './moves.js';
import { type NodeState, scanning } from './state.js';

/** A node that does not serve. */
const REFUSE_ALL: Row<NodeMessage, NodeState, NodeStep> = {
  scanned: ignore,
  scanFailed: ignore,
  awaitReady: refuseRequest,
  create: refuseRequest,
  delete: refuseRequest,
  changeAliases: refuseRequest,
  aliasesSaved: ignore,
  aliasesNotSaved: ignore,
  collectionOpened: ignore,
  collectionDied: ignore,
  createFailed: ignore,
  collectionDeleted: ignore,
  collectionClosed: ignore,
  desire: ignore,
  adopt: refuseRequest,
  reshaped: ignore,
  reshapeFailed: ignore,
  takenAway: ignore,
  takeAwayFailed: ignore,
  retry: ignore,
  tellNow: ignore,
  consensusGaveUp: ignore,
  transfersGaveUp: ignore,
  collectionGaveUp: ignore,
  close: refuseRequest,
};

/** A node that serves. Messages with `ignore` are handled after each step, by the folder's move: see `carry-out.ts`. */
const SERVE: Omit<Row<NodeMessage, Serving, NodeStep>, 'awaitReady'> = {
  scanned: ignore,
  scanFailed: ignore,
  create: createIfNew,
  delete: deleteWithAliases,
  changeAliases: queueAliasChange,
  aliasesSaved: takeAliases,
  aliasesNotSaved: dropAliasChange,
  collectionOpened: noteOpened,
  collectionDied: noteDied,
  createFailed: noteGone,
  collectionDeleted: noteGone,
  collectionClosed: noteGone,
  desire: takeDesired,
  adopt,
  reshaped: ignore,
  reshapeFailed: ignore,
  takenAway: noteTakenAway,
  takeAwayFailed: noteNotTaken,
  retry: tryAgain,
  tellNow: ignore,
  consensusGaveUp: loseConsensus,
  transfersGaveUp: loseTransfers,
  collectionGaveUp: noteAbandoned,
  close,
};

export const NODE_TABLE: Table<NodeState, NodeMessage, NodeStep> = {
  Scanning: { ...REFUSE_ALL, scanned: openAll, scanFailed: becomeFailed, awaitReady: waitForReady, close: closeNow },
  Starting: { ...SERVE, awaitReady: waitForReady },
  Active: { ...SERVE, awaitReady: answerReady },
  Stopping: {
    ...REFUSE_ALL,
    aliasesSaved: endAliasChange,
    aliasesNotSaved: endAliasChange,
    collectionOpened: closeUndeleted,
    collectionDied: closeUndeleted,
    createFailed: noteGone,
    collectionDeleted: noteGone,
    collectionClosed: noteGone,
    takenAway: noteGone,
    takeAwayFailed: noteGone,
    collectionGaveUp: noteGone,
  },
  Failed: { ...REFUSE_ALL, close: closeNow },
};

export function startNodeActor(): NodeStep {
  return become<NodeState, NodeEffect>(scanning(), { kind: 'scan' });
}

export function stepNode(state: NodeState, message: NodeMessage): NodeStep {
  const step = decide(NODE_TABLE, state, message);
  return inCluster(step.state) ? carryOn(step, message) : step;
}

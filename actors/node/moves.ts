/** The table of the node's moves. */

import type { NodeMessage } from './messages.js';
import type { NodeState } from './state.js';

export type NodeMove =
  | 'ignore'
  | 'openAll'
  | 'becomeFailed'
  | 'waitForReady'
  | 'answerReady'
  | 'refuse'
  | 'create'
  | 'delete'
  | 'changeAliases'
  | 'takeAliases'
  | 'dropAliasChange'
  | 'endAliasChange'
  | 'noteOpened'
  | 'noteDied'
  | 'noteGone'
  | 'noteAbandoned'
  | 'close'
  | 'closeNow'
  | 'desire'
  | 'adopt'
  /** Decided by what the folder's move is: see `carry-out.ts`. */
  | 'look'
  | 'noteTakenAway'
  | 'noteStill'
  | 'retry'
  | 'loseConsensus';

/** States × messages. */
export const NODE_MOVES: Readonly<Record<NodeState['kind'], Readonly<Record<NodeMessage['kind'], NodeMove>>>> = {
  Scanning: {
    scanned: 'openAll',
    scanFailed: 'becomeFailed',
    awaitReady: 'waitForReady',
    create: 'refuse',
    delete: 'refuse',
    changeAliases: 'refuse',
    aliasesSaved: 'ignore',
    aliasesNotSaved: 'ignore',
    collectionOpened: 'ignore',
    collectionDied: 'ignore',
    createFailed: 'ignore',
    collectionDeleted: 'ignore',
    collectionClosed: 'ignore',
    desire: 'ignore',
    adopt: 'refuse',
    reshaped: 'ignore',
    reshapeFailed: 'ignore',
    takenAway: 'ignore',
    takeAwayFailed: 'ignore',
    retry: 'ignore',
    tellNow: 'ignore',
    consensusGaveUp: 'ignore',
    collectionGaveUp: 'ignore',
    close: 'closeNow',
  },
  Starting: {
    scanned: 'ignore',
    scanFailed: 'ignore',
    awaitReady: 'waitForReady',
    create: 'create',
    delete: 'delete',
    changeAliases: 'changeAliases',
    aliasesSaved: 'takeAliases',
    aliasesNotSaved: 'dropAliasChange',
    collectionOpened: 'noteOpened',
    collectionDied: 'noteDied',
    createFailed: 'noteGone',
    collectionDeleted: 'noteGone',
    collectionClosed: 'noteGone',
    desire: 'desire',
    adopt: 'adopt',
    reshaped: 'look',
    reshapeFailed: 'look',
    takenAway: 'noteTakenAway',
    takeAwayFailed: 'noteStill',
    retry: 'retry',
    tellNow: 'look',
    consensusGaveUp: 'loseConsensus',
    collectionGaveUp: 'noteAbandoned',
    close: 'close',
  },
  Active: {
    scanned: 'ignore',
    scanFailed: 'ignore',
    awaitReady: 'answerReady',
    create: 'create',
    delete: 'delete',
    changeAliases: 'changeAliases',
    aliasesSaved: 'takeAliases',
    aliasesNotSaved: 'dropAliasChange',
    collectionOpened: 'noteOpened',
    collectionDied: 'noteDied',
    createFailed: 'noteGone',
    collectionDeleted: 'noteGone',
    collectionClosed: 'noteGone',
    desire: 'desire',
    adopt: 'adopt',
    reshaped: 'look',
    reshapeFailed: 'look',
    takenAway: 'noteTakenAway',
    takeAwayFailed: 'noteStill',
    retry: 'retry',
    tellNow: 'look',
    consensusGaveUp: 'loseConsensus',
    collectionGaveUp: 'noteAbandoned',
    close: 'close',
  },
  Stopping: {
    scanned: 'ignore',
    scanFailed: 'ignore',
    awaitReady: 'refuse',
    create: 'refuse',
    delete: 'refuse',
    changeAliases: 'refuse',
    aliasesSaved: 'endAliasChange',
    aliasesNotSaved: 'endAliasChange',
    collectionOpened: 'noteOpened',
    collectionDied: 'ignore',
    createFailed: 'noteGone',
    collectionDeleted: 'noteGone',
    collectionClosed: 'noteGone',
    desire: 'ignore',
    adopt: 'refuse',
    reshaped: 'ignore',
    reshapeFailed: 'ignore',
    takenAway: 'noteGone',
    takeAwayFailed: 'noteGone',
    retry: 'ignore',
    tellNow: 'ignore',
    consensusGaveUp: 'ignore',
    collectionGaveUp: 'noteGone',
    close: 'refuse',
  },
  Failed: {
    scanned: 'ignore',
    scanFailed: 'ignore',
    awaitReady: 'refuse',
    create: 'refuse',
    delete: 'refuse',
    changeAliases: 'refuse',
    aliasesSaved: 'ignore',
    aliasesNotSaved: 'ignore',
    collectionOpened: 'ignore',
    collectionDied: 'ignore',
    createFailed: 'ignore',
    collectionDeleted: 'ignore',
    collectionClosed: 'ignore',
    desire: 'ignore',
    adopt: 'refuse',
    reshaped: 'ignore',
    reshapeFailed: 'ignore',
    takenAway: 'ignore',
    takeAwayFailed: 'ignore',
    retry: 'ignore',
    tellNow: 'ignore',
    consensusGaveUp: 'ignore',
    collectionGaveUp: 'ignore',
    close: 'closeNow',
  },
};

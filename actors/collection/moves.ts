/** The table of a collection's moves. */

import type { CollectionMessage } from './messages.js';
import type { CollectionState } from './state.js';

export type CollectionMove =
  | 'ignore'
  | 'open'
  | 'becomeDamaged'
  | 'giveUpCreating'
  | 'noteOpened'
  | 'becomeDead'
  | 'noteGivenUp'
  | 'noteDropped'
  | 'reshape'
  | 'keepReshape'
  | 'saveReshape'
  | 'takeReshape'
  | 'failReshape'
  | 'noteClosed'
  | 'update'
  | 'takeSaved'
  | 'failSaved'
  | 'answerSaved'
  | 'refuse'
  | 'delete'
  | 'deleteFiles'
  | 'close'
  | 'closeNow'
  | 'finishDeleting';

/** States × messages. */
export const COLLECTION_MOVES: Readonly<Record<CollectionState['kind'], Readonly<Record<CollectionMessage['kind'], CollectionMove>>>> = {
  Loading: {
    loaded: 'open',
    loadFailed: 'becomeDamaged',
    createFailed: 'ignore',
    shardOpened: 'ignore',
    shardFailed: 'ignore',
    shardClosed: 'ignore',
    shardStopped: 'ignore',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    delete: 'deleteFiles',
    reshape: 'keepReshape',
    shardsRemoved: 'ignore',
    reshapeSaved: 'ignore',
    reshapeFailed: 'ignore',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'closeNow',
  },
  Creating: {
    loaded: 'open',
    loadFailed: 'giveUpCreating',
    createFailed: 'giveUpCreating',
    shardOpened: 'ignore',
    shardFailed: 'ignore',
    shardClosed: 'ignore',
    shardStopped: 'ignore',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    // Its files are being made at this moment.
    delete: 'refuse',
    reshape: 'refuse',
    shardsRemoved: 'ignore',
    reshapeSaved: 'ignore',
    reshapeFailed: 'ignore',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'closeNow',
  },
  Opening: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'noteOpened',
    shardFailed: 'becomeDead',
    shardClosed: 'noteDropped',
    shardStopped: 'noteGivenUp',
    update: 'update',
    saved: 'takeSaved',
    saveFailed: 'failSaved',
    delete: 'delete',
    reshape: 'reshape',
    shardsRemoved: 'saveReshape',
    reshapeSaved: 'takeReshape',
    reshapeFailed: 'failReshape',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'close',
  },
  Active: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'noteOpened',
    shardFailed: 'becomeDead',
    shardClosed: 'noteDropped',
    shardStopped: 'noteGivenUp',
    update: 'update',
    saved: 'takeSaved',
    saveFailed: 'failSaved',
    delete: 'delete',
    reshape: 'reshape',
    shardsRemoved: 'saveReshape',
    reshapeSaved: 'takeReshape',
    reshapeFailed: 'failReshape',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'close',
  },
  Dead: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'noteOpened',
    shardFailed: 'becomeDead',
    shardClosed: 'noteDropped',
    shardStopped: 'noteGivenUp',
    update: 'update',
    saved: 'takeSaved',
    saveFailed: 'failSaved',
    delete: 'delete',
    reshape: 'reshape',
    shardsRemoved: 'saveReshape',
    reshapeSaved: 'takeReshape',
    reshapeFailed: 'failReshape',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'close',
  },
  Damaged: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'ignore',
    shardFailed: 'ignore',
    shardClosed: 'ignore',
    shardStopped: 'ignore',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    delete: 'deleteFiles',
    reshape: 'refuse',
    shardsRemoved: 'ignore',
    reshapeSaved: 'ignore',
    reshapeFailed: 'ignore',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'closeNow',
  },
  Deleting: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'ignore',
    shardFailed: 'ignore',
    shardClosed: 'noteClosed',
    shardStopped: 'noteClosed',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    delete: 'refuse',
    reshape: 'refuse',
    shardsRemoved: 'ignore',
    reshapeSaved: 'ignore',
    reshapeFailed: 'ignore',
    removed: 'finishDeleting',
    removeFailed: 'becomeDamaged',
    // The node waits for the end of the deletion.
    close: 'ignore',
  },
  Closing: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'ignore',
    shardFailed: 'ignore',
    shardClosed: 'noteClosed',
    shardStopped: 'noteClosed',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    delete: 'refuse',
    reshape: 'refuse',
    shardsRemoved: 'ignore',
    reshapeSaved: 'ignore',
    reshapeFailed: 'ignore',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'ignore',
  },
};

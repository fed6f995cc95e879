/**
 * Commands that change the cluster's state, as bytes: JSON with a version, its fields in a fixed order, so that equal proposals have
 * equal bytes. A release reads what earlier ones wrote; what a later one wrote stops it, as guessing would split the cluster.
 */

import { stringifyJson } from '../../protocols/json.js';
import type { AliasAction } from '../../protocols/model/alias.js';
import { RESHARDING_DIRECTIONS, TRANSFER_METHODS } from '../../protocols/model/cluster.js';
import {
  type ClusterCommand,
  type PlannedMove,
  type ProposedCommand,
  RESHARDING_STAGES,
  type ReplicaChange,
  type TransferKey,
} from './commands.js';
import { parseObject, readAll, type StrictFields } from './strict-fields.js';

/** Raised when a field changes its meaning or an operation does. 2: shards have leaders, and terms to name them by. 3: keys may be closed. */
const VERSION = 3;

/** An operation of the log. hasLeaders: it was written by a release in which operations give shards their leaders. */
export type StoredCommand = ProposedCommand & { readonly hasLeaders: boolean };

export function encodeCommand({ doneBelow, command, origin, sequence, session }: ProposedCommand): Uint8Array {
  const text = stringifyJson({ version: VERSION, origin, session, sequence, doneBelow, command: inOrder(command) });
  return Buffer.from(text, 'utf8');
}

/** What `encodeOperation` made these bytes of. Errors: `storage`, naming what cannot be read. */
export function decodeCommand(bytes: Uint8Array): StoredCommand {
  return readAll(parseObject(bytes, 'a command of the cluster'), (fields) => {
    const version = fields.version(VERSION);
    return {
      origin: fields.integer('origin'),
      session: fields.integer('session'),
      sequence: fields.integer('sequence'),
      doneBelow: fields.integer('doneBelow'),
      command: fields.nested('command', (nested) => readCommand(nested, version)),
      hasLeaders: version >= 2,
    };
  });
}

/** The operation with its fields in the order of its type, whatever order its maker had. */
function inOrder(command: ClusterCommand): ClusterCommand {
  const { kind } = command;
  switch (kind) {
    case 'createCollection':
      return { kind, name: command.name, config: command.config, placement: command.placement };
    case 'updateCollection':
      return { kind, name: command.name, config: command.config, basedOn: command.basedOn };
    case 'deleteCollection':
      return { kind, name: command.name };
    case 'changeAliases':
      return { kind, actions: command.actions.map(actionInOrder) };
    case 'createShardKey': {
      const { closed, collection, initialState, key, placement } = command;
      return { kind, collection, key, placement, initialState, closed };
    }
    case 'dropShardKey':
      return { kind, collection: command.collection, key: command.key };
    case 'startResharding': {
      const { collection, direction, key, placement } = command;
      return { kind, collection, direction, key, placement };
    }
    case 'startKeyCopy': {
      const { collection, filter, source, target } = command;
      return { kind, collection, source, target, filter };
    }
    case 'finishStage': {
      const { term, collection, shardId, stage, startedAt } = command;
      return { kind, collection, startedAt, stage, shardId, term };
    }
    case 'abortResharding':
      return { kind, collection: command.collection };
    case 'setReplicaStates':
      return { kind, changes: command.changes.map(changeInOrder) };
    case 'dropReplica':
    case 'recreateShard':
      return { kind, collection: command.collection, shardId: command.shardId, peerId: command.peerId };
    case 'startTransfer': {
      const { collection, method, sync, transfer } = command;
      return { kind, collection, transfer: keyInOrder(transfer), method, sync };
    }
    case 'restartTransfer':
      return { kind, ...transferInOrder(command), method: command.method, term: command.term };
    case 'finishTransfer':
      return { kind, ...transferInOrder(command), term: command.term };
    case 'abortTransfer':
      return { kind, ...transferInOrder(command), reason: command.reason, term: command.term };
    case 'markPeer':
      return { kind, peerId: command.peerId, listens: command.listens, leaving: command.leaving };
    case 'planMoves':
      return { kind, moves: command.moves.map(moveInOrder) };
    case 'setAutoReplication':
      return { kind, collection: command.collection, enabled: command.enabled };
    case 'changeLeader': {
      const { term, collection, shardId, to, uid } = command;
      return { kind, collection, uid, shardId, to, term };
    }
    case 'electLeaders':
    case 'noop':
      return { kind };
    default:
      return command satisfies never;
  }
}

function actionInOrder(action: AliasAction): AliasAction {
  const { kind } = action;
  switch (kind) {
    case 'create':
      return { kind, alias: action.alias, collection: action.collection };
    case 'delete':
      return { kind, alias: action.alias };
    case 'rename':
      return { kind, from: action.from, to: action.to };
    default:
      return action satisfies never;
  }
}

function changeInOrder({ term, collection, from, peerId, shardId, to, uid }: ReplicaChange): ReplicaChange {
  return { collection, uid, shardId, peerId, from, to, term };
}

export function moveInOrder({ collection, from, shardId, to, uid }: PlannedMove): PlannedMove {
  return { collection, uid, shardId, from, to };
}

export function readMove(fields: StrictFields): PlannedMove {
  return {
    collection: fields.string('collection'),
    uid: fields.integer('uid'),
    shardId: fields.integer('shardId'),
    from: fields.integerOrNull('from'),
    to: fields.integerOrNull('to'),
  };
}

function transferInOrder({ collection, transfer }: { readonly collection: string; readonly transfer: TransferKey }): NamedTransfer {
  return { collection, transfer: keyInOrder(transfer) };
}

function keyInOrder({ from, shardId, to, toShardId }: TransferKey): TransferKey {
  return { shardId, from, to, toShardId };
}

const LEAVING = ['removal', 'drain', 'stays'] as const;

interface NamedTransfer {
  readonly collection: string;
  readonly transfer: TransferKey;
}

const KINDS: readonly ClusterCommand['kind'][] = [
  'createCollection',
  'updateCollection',
  'deleteCollection',
  'changeAliases',
  'createShardKey',
  'dropShardKey',
  'startResharding',
  'startKeyCopy',
  'finishStage',
  'abortResharding',
  'setReplicaStates',
  'dropReplica',
  'recreateShard',
  'startTransfer',
  'restartTransfer',
  'finishTransfer',
  'abortTransfer',
  'markPeer',
  'planMoves',
  'setAutoReplication',
  'changeLeader',
  'electLeaders',
  'noop',
];

function readCommand(fields: StrictFields, version: number): ClusterCommand {
  const kind = fields.word('kind', KINDS);
  switch (kind) {
    case 'createCollection':
      return {
        kind,
        name: fields.string('name'),
        config: fields.config('config'),
        placement: fields.placement('placement'),
      };
    case 'updateCollection':
      return { kind, name: fields.string('name'), config: fields.config('config'), basedOn: fields.integer('basedOn') };
    case 'deleteCollection':
      return { kind, name: fields.string('name') };
    case 'changeAliases':
      return { kind, actions: fields.list('actions', readAction) };
    case 'createShardKey':
      return {
        kind,
        collection: fields.string('collection'),
        key: fields.shardKey('key'),
        placement: fields.placement('placement'),
        initialState: fields.value('initialState') === null ? null : fields.replicaState('initialState'),
        closed: version >= 3 ? fields.boolean('closed') : false,
      };
    case 'dropShardKey':
      return { kind, collection: fields.string('collection'), key: fields.shardKey('key') };
    case 'startResharding':
      return {
        kind,
        collection: fields.string('collection'),
        direction: fields.word('direction', RESHARDING_DIRECTIONS),
        key: fields.value('key') === null ? null : fields.shardKey('key'),
        placement: fields.placement('placement'),
      };
    case 'startKeyCopy':
      return {
        kind,
        collection: fields.string('collection'),
        source: fields.shardKey('source'),
        target: fields.shardKey('target'),
        filter: fields.stringOrNull('filter'),
      };
    case 'finishStage':
      return {
        kind,
        collection: fields.string('collection'),
        startedAt: fields.integer('startedAt'),
        stage: fields.word('stage', RESHARDING_STAGES),
        shardId: fields.integer('shardId'),
        term: fields.integer('term'),
      };
    case 'abortResharding':
      return { kind, collection: fields.string('collection') };
    case 'setReplicaStates':
      return { kind, changes: fields.list('changes', (item) => readChange(item, version)) };
    case 'dropReplica':
    case 'recreateShard':
      return { kind, collection: fields.string('collection'), shardId: fields.integer('shardId'), peerId: fields.integer('peerId') };
    case 'startTransfer':
      return { kind, ...readTransfer(fields), method: fields.word('method', TRANSFER_METHODS), sync: fields.boolean('sync') };
    case 'restartTransfer':
      return { kind, ...readTransfer(fields), method: fields.word('method', TRANSFER_METHODS), term: readTerm(fields, version) };
    case 'finishTransfer':
      return { kind, ...readTransfer(fields), term: readTerm(fields, version) };
    case 'abortTransfer':
      return { kind, ...readTransfer(fields), reason: fields.string('reason'), term: readTerm(fields, version) };
    case 'markPeer':
      return {
        kind,
        peerId: fields.integer('peerId'),
        listens: fields.value('listens') === null ? null : fields.boolean('listens'),
        leaving: fields.value('leaving') === null ? null : fields.word('leaving', LEAVING),
      };
    case 'planMoves':
      return { kind, moves: fields.list('moves', readMove) };
    case 'setAutoReplication':
      return { kind, collection: fields.string('collection'), enabled: fields.boolean('enabled') };
    case 'changeLeader':
      return {
        kind,
        collection: fields.string('collection'),
        uid: fields.integer('uid'),
        shardId: fields.integer('shardId'),
        to: fields.integer('to'),
        term: fields.integer('term'),
      };
    case 'electLeaders':
    case 'noop':
      return { kind };
    default:
      return kind satisfies never;
  }
}

function readAction(fields: StrictFields): AliasAction {
  const kind = fields.word('kind', ['create', 'delete', 'rename']);
  switch (kind) {
    case 'create':
      return { kind, alias: fields.string('alias'), collection: fields.string('collection') };
    case 'delete':
      return { kind, alias: fields.string('alias') };
    case 'rename':
      return { kind, from: fields.string('from'), to: fields.string('to') };
    default:
      return kind satisfies never;
  }
}

function readChange(fields: StrictFields, version: number): ReplicaChange {
  return {
    collection: fields.string('collection'),
    uid: fields.integer('uid'),
    shardId: fields.integer('shardId'),
    peerId: fields.integer('peerId'),
    from: fields.value('from') === null ? null : fields.replicaState('from'),
    to: fields.replicaState('to'),
    term: readTerm(fields, version),
  };
}

function readTerm(fields: StrictFields, version: number): number | null {
  return version >= 2 ? fields.integerOrNull('term') : null;
}

function readTransfer(fields: StrictFields): NamedTransfer {
  return { collection: fields.string('collection'), transfer: fields.nested('transfer', readTransferKey) };
}

function readTransferKey(fields: StrictFields): TransferKey {
  return {
    shardId: fields.integer('shardId'),
    from: fields.integer('from'),
    to: fields.integer('to'),
    toShardId: fields.integerOrNull('toShardId'),
  };
}

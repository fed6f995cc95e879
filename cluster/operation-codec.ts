/**
 * Operations on the cluster's state as bytes: JSON with a version, its fields in a fixed order, so that equal proposals have
 * equal bytes. A release reads what earlier ones wrote; what a later one wrote stops it, as guessing would split the cluster.
 */

import { stringifyJson } from '../protocols/json.js';
import type { AliasAction } from '../protocols/model/alias.js';
import { TRANSFER_METHODS } from '../protocols/model/cluster.js';
import type { ClusterOperation, ProposedOperation, ReplicaChange, TransferKey } from './operations.js';
import { parseObject, readAll, type StrictFields } from './strict-fields.js';

/** Raised when a field changes its meaning or an operation does. */
const VERSION = 1;

export function encodeOperation({ doneBelow, operation, origin, sequence, session }: ProposedOperation): Uint8Array {
  const text = stringifyJson({ version: VERSION, origin, session, sequence, doneBelow, operation: inOrder(operation) });
  return Buffer.from(text, 'utf8');
}

/** What `encodeOperation` made these bytes of. Errors: `storage`, naming what cannot be read. */
export function decodeOperation(bytes: Uint8Array): ProposedOperation {
  return readAll(parseObject(bytes, 'an operation of the cluster'), (fields) => {
    fields.version(VERSION);
    return {
      origin: fields.integer('origin'),
      session: fields.integer('session'),
      sequence: fields.integer('sequence'),
      doneBelow: fields.integer('doneBelow'),
      operation: fields.nested('operation', readOperation),
    };
  });
}

/** The operation with its fields in the order of its type, whatever order its maker had. */
function inOrder(operation: ClusterOperation): ClusterOperation {
  const { kind } = operation;
  switch (kind) {
    case 'createCollection':
      return { kind, name: operation.name, config: operation.config, placement: operation.placement };
    case 'updateCollection':
      return { kind, name: operation.name, config: operation.config, basedOn: operation.basedOn };
    case 'deleteCollection':
      return { kind, name: operation.name };
    case 'changeAliases':
      return { kind, actions: operation.actions.map(actionInOrder) };
    case 'createShardKey': {
      const { collection, initialState, key, placement } = operation;
      return { kind, collection, key, placement, initialState };
    }
    case 'dropShardKey':
      return { kind, collection: operation.collection, key: operation.key };
    case 'setReplicaStates':
      return { kind, changes: operation.changes.map(changeInOrder) };
    case 'dropReplica':
      return { kind, collection: operation.collection, shardId: operation.shardId, peerId: operation.peerId };
    case 'startTransfer': {
      const { collection, method, sync, transfer } = operation;
      return { kind, collection, transfer: keyInOrder(transfer), method, sync };
    }
    case 'restartTransfer':
      return { kind, collection: operation.collection, transfer: keyInOrder(operation.transfer), method: operation.method };
    case 'finishTransfer':
      return { kind, collection: operation.collection, transfer: keyInOrder(operation.transfer) };
    case 'abortTransfer':
      return { kind, collection: operation.collection, transfer: keyInOrder(operation.transfer), reason: operation.reason };
    case 'noop':
      return { kind };
    default:
      return operation satisfies never;
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

function changeInOrder({ collection, from, peerId, shardId, to, uid }: ReplicaChange): ReplicaChange {
  return { collection, uid, shardId, peerId, from, to };
}

function keyInOrder({ from, shardId, to, toShardId }: TransferKey): TransferKey {
  return { shardId, from, to, toShardId };
}

const KINDS: readonly ClusterOperation['kind'][] = [
  'createCollection',
  'updateCollection',
  'deleteCollection',
  'changeAliases',
  'createShardKey',
  'dropShardKey',
  'setReplicaStates',
  'dropReplica',
  'startTransfer',
  'restartTransfer',
  'finishTransfer',
  'abortTransfer',
  'noop',
];

function readOperation(fields: StrictFields): ClusterOperation {
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
      };
    case 'dropShardKey':
      return { kind, collection: fields.string('collection'), key: fields.shardKey('key') };
    case 'setReplicaStates':
      return { kind, changes: fields.list('changes', readChange) };
    case 'dropReplica':
      return { kind, collection: fields.string('collection'), shardId: fields.integer('shardId'), peerId: fields.integer('peerId') };
    case 'startTransfer':
      return { kind, ...readTransfer(fields), method: fields.word('method', TRANSFER_METHODS), sync: fields.boolean('sync') };
    case 'restartTransfer':
      return { kind, ...readTransfer(fields), method: fields.word('method', TRANSFER_METHODS) };
    case 'finishTransfer':
      return { kind, ...readTransfer(fields) };
    case 'abortTransfer':
      return { kind, ...readTransfer(fields), reason: fields.string('reason') };
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

function readChange(fields: StrictFields): ReplicaChange {
  return {
    collection: fields.string('collection'),
    uid: fields.integer('uid'),
    shardId: fields.integer('shardId'),
    peerId: fields.integer('peerId'),
    from: fields.value('from') === null ? null : fields.replicaState('from'),
    to: fields.replicaState('to'),
  };
}

function readTransfer(fields: StrictFields): { collection: string; transfer: TransferKey } {
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

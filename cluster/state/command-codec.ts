/**
 * Encodes commands that change the cluster's state as JSON with a version and its fields in a fixed order, so that equal proposals have
 * equal bytes. A release reads what earlier ones wrote. What a later release wrote stops it, as a guess would split the cluster.
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
import {
  CONFIG,
  FLAG_FIELD,
  INTEGER,
  INTEGER_OR_NULL,
  nullable,
  PLACEMENT,
  REPLICA_STATE,
  readTagged,
  SHARD_KEY,
  type Shape,
  type Shapes,
  since,
  structListOf,
  structOf,
  TEXT_FIELD,
  TEXT_OR_NULL,
  taggedInOrder,
  taggedListOf,
  wordOf,
} from './field-codecs.js';
import { parseObject, readAll } from './strict-fields.js';

/** Raised when a field or a command changes its meaning. 2: shards have leaders and terms. 3: keys may be closed. */
const VERSION = 3;

/** A command as the log has it. hasLeaders: it was written by a release in which commands elect leaders of shards. */
export type StoredCommand = ProposedCommand & { readonly hasLeaders: boolean };

export function encodeCommand({ doneBelow, command, origin, sequence, session }: ProposedCommand): Uint8Array {
  const text = stringifyJson({ version: VERSION, origin, session, sequence, doneBelow, command: taggedInOrder(COMMANDS, command) });
  return Buffer.from(text, 'utf8');
}

/** Decodes what `encodeCommand` wrote. Errors: `storage`, naming the field that cannot be read. */
export function decodeCommand(bytes: Uint8Array): StoredCommand {
  return readAll(parseObject(bytes, 'a command of the cluster'), (fields) => {
    const version = fields.version(VERSION);
    return {
      origin: fields.integer('origin'),
      session: fields.integer('session'),
      sequence: fields.integer('sequence'),
      doneBelow: fields.integer('doneBelow'),
      command: fields.nested('command', (nested) => readTagged(COMMANDS, nested, version)),
      hasLeaders: version >= 2,
    };
  });
}

const ALIAS_ACTIONS: Shapes<AliasAction> = {
  create: { alias: TEXT_FIELD, collection: TEXT_FIELD },
  delete: { alias: TEXT_FIELD },
  rename: { from: TEXT_FIELD, to: TEXT_FIELD },
};

const TERM_OR_NULL = since(2, INTEGER_OR_NULL, null);

const TRANSFER_KEY = structOf<TransferKey>({ shardId: INTEGER, from: INTEGER, to: INTEGER, toShardId: INTEGER_OR_NULL });

const REPLICA_CHANGE: Shape<ReplicaChange> = {
  collection: TEXT_FIELD,
  uid: INTEGER,
  shardId: INTEGER,
  peerId: INTEGER,
  from: nullable(REPLICA_STATE),
  to: REPLICA_STATE,
  term: TERM_OR_NULL,
};

const PLANNED_MOVE: Shape<PlannedMove> = {
  collection: TEXT_FIELD,
  uid: INTEGER,
  shardId: INTEGER,
  from: INTEGER_OR_NULL,
  to: INTEGER_OR_NULL,
};

/** The codec of planned moves, also used by the state's codec. */
export const PLANNED_MOVES = structListOf(PLANNED_MOVE);

const METHOD = wordOf(TRANSFER_METHODS);
const LEAVING = wordOf(['removal', 'drain', 'stays']);

const COMMANDS: Shapes<ClusterCommand> = {
  createCollection: { name: TEXT_FIELD, config: CONFIG, placement: PLACEMENT },
  updateCollection: { name: TEXT_FIELD, config: CONFIG, basedOn: INTEGER },
  deleteCollection: { name: TEXT_FIELD },
  changeAliases: { actions: taggedListOf(ALIAS_ACTIONS) },
  createShardKey: {
    collection: TEXT_FIELD,
    key: SHARD_KEY,
    placement: PLACEMENT,
    initialState: nullable(REPLICA_STATE),
    closed: since(3, FLAG_FIELD, false),
  },
  dropShardKey: { collection: TEXT_FIELD, key: SHARD_KEY },
  startResharding: { collection: TEXT_FIELD, direction: wordOf(RESHARDING_DIRECTIONS), key: nullable(SHARD_KEY), placement: PLACEMENT },
  startKeyCopy: { collection: TEXT_FIELD, source: SHARD_KEY, target: SHARD_KEY, filter: TEXT_OR_NULL },
  finishStage: { collection: TEXT_FIELD, startedAt: INTEGER, stage: wordOf(RESHARDING_STAGES), shardId: INTEGER, term: INTEGER },
  abortResharding: { collection: TEXT_FIELD },
  setReplicaStates: { changes: structListOf(REPLICA_CHANGE) },
  dropReplica: { collection: TEXT_FIELD, shardId: INTEGER, peerId: INTEGER },
  recreateShard: { collection: TEXT_FIELD, shardId: INTEGER, peerId: INTEGER },
  startTransfer: { collection: TEXT_FIELD, transfer: TRANSFER_KEY, method: METHOD, sync: FLAG_FIELD },
  restartTransfer: { collection: TEXT_FIELD, transfer: TRANSFER_KEY, method: METHOD, term: TERM_OR_NULL },
  finishTransfer: { collection: TEXT_FIELD, transfer: TRANSFER_KEY, term: TERM_OR_NULL },
  abortTransfer: { collection: TEXT_FIELD, transfer: TRANSFER_KEY, reason: TEXT_FIELD, term: TERM_OR_NULL },
  markPeer: { peerId: INTEGER, listens: nullable(FLAG_FIELD), leaving: nullable(LEAVING) },
  planMoves: { moves: PLANNED_MOVES },
  setAutoReplication: { collection: TEXT_FIELD, enabled: FLAG_FIELD },
  changeLeader: { collection: TEXT_FIELD, uid: INTEGER, shardId: INTEGER, to: INTEGER, term: INTEGER },
  electLeaders: {},
  noop: {},
};

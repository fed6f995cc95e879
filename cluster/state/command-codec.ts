/**
 * Encodes commands that change the cluster's state as JSON with a version and its fields in a fixed order, so that equal proposals have
 * equal bytes. What a later release wrote stops this one, as a guess would split the cluster.
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
  FIELD_SCHEMA,
  FLAG_FIELD,
  INTEGER,
  INTEGER_OR_NULL,
  nested,
  nullable,
  PLACEMENT,
  REPLICA_STATE,
  SHARD_KEY,
  structListOf,
  structOf,
  TEXT_FIELD,
  TEXT_OR_NULL,
  unionOf,
  wordOf,
  writtenAs,
} from './field-codecs.js';
import { readObject } from './strict-fields.js';

/** Raised when a field or a command changes its meaning. */
const VERSION = 3;

export function encodeCommand(proposed: ProposedCommand): Uint8Array {
  return Buffer.from(stringifyJson({ version: VERSION, ...PROPOSED.write(proposed) }), 'utf8');
}

/** Decodes what `encodeCommand` wrote. Errors: `storage`, naming the field that cannot be read. */
export function decodeCommand(bytes: Uint8Array): ProposedCommand {
  return readObject(bytes, 'a command of the cluster', VERSION, PROPOSED.read);
}

const TERM = writtenAs('clock', INTEGER);
const TERM_OR_NULL = writtenAs('clock', INTEGER_OR_NULL);

const ALIAS_ACTIONS = unionOf<AliasAction>({
  create: { alias: TEXT_FIELD, collection: TEXT_FIELD },
  delete: { alias: TEXT_FIELD },
  rename: { from: TEXT_FIELD, to: TEXT_FIELD },
});

/** The fields of a `TransferKey`, also used by the state's codec. */
export const TRANSFER_KEY = { shardId: INTEGER, from: INTEGER, to: INTEGER, toShardId: INTEGER_OR_NULL };

const TRANSFER = nested(structOf<TransferKey>(TRANSFER_KEY));

const REPLICA_CHANGES = structListOf(
  structOf<ReplicaChange>({
    collection: TEXT_FIELD,
    uid: INTEGER,
    shardId: INTEGER,
    peerId: INTEGER,
    from: nullable(REPLICA_STATE),
    to: REPLICA_STATE,
    term: TERM_OR_NULL,
  }),
);

/** The codec of planned moves, also used by the state's codec. */
export const PLANNED_MOVES = structListOf(
  structOf<PlannedMove>({ collection: TEXT_FIELD, uid: INTEGER, shardId: INTEGER, from: INTEGER_OR_NULL, to: INTEGER_OR_NULL }),
);

const METHOD = wordOf(TRANSFER_METHODS);
const LEAVING = wordOf(['removal', 'drain', 'stays']);

const COMMAND = unionOf<ClusterCommand>({
  createCollection: { name: TEXT_FIELD, config: CONFIG, placement: PLACEMENT },
  updateCollection: { name: TEXT_FIELD, config: CONFIG, basedOn: INTEGER },
  deleteCollection: { name: TEXT_FIELD },
  changeAliases: { actions: structListOf(ALIAS_ACTIONS) },
  createShardKey: {
    collection: TEXT_FIELD,
    key: SHARD_KEY,
    placement: PLACEMENT,
    initialState: nullable(REPLICA_STATE),
    closed: FLAG_FIELD,
  },
  dropShardKey: { collection: TEXT_FIELD, key: SHARD_KEY },
  setPayloadIndex: { collection: TEXT_FIELD, uid: INTEGER, field: TEXT_FIELD, schema: nullable(FIELD_SCHEMA) },
  setMetadata: { key: TEXT_FIELD, value: TEXT_OR_NULL },
  startResharding: { collection: TEXT_FIELD, direction: wordOf(RESHARDING_DIRECTIONS), key: nullable(SHARD_KEY), placement: PLACEMENT },
  startKeyCopy: { collection: TEXT_FIELD, source: SHARD_KEY, target: SHARD_KEY, filter: TEXT_OR_NULL },
  finishStage: { collection: TEXT_FIELD, startedAt: INTEGER, stage: wordOf(RESHARDING_STAGES), shardId: INTEGER, term: TERM },
  abortResharding: { collection: TEXT_FIELD },
  setReplicaStates: { changes: REPLICA_CHANGES },
  dropReplica: { collection: TEXT_FIELD, shardId: INTEGER, peerId: INTEGER },
  recreateShard: { collection: TEXT_FIELD, shardId: INTEGER, peerId: INTEGER },
  startTransfer: { collection: TEXT_FIELD, transfer: TRANSFER, method: METHOD, sync: FLAG_FIELD },
  restartTransfer: { collection: TEXT_FIELD, transfer: TRANSFER, method: METHOD, term: TERM_OR_NULL },
  finishTransfer: { collection: TEXT_FIELD, transfer: TRANSFER, term: TERM_OR_NULL },
  abortTransfer: { collection: TEXT_FIELD, transfer: TRANSFER, reason: TEXT_FIELD, term: TERM_OR_NULL },
  markPeer: { peerId: INTEGER, listens: nullable(FLAG_FIELD), leaving: nullable(LEAVING) },
  planMoves: { moves: PLANNED_MOVES },
  setAutoReplication: { collection: TEXT_FIELD, enabled: FLAG_FIELD },
  changeLeader: { collection: TEXT_FIELD, uid: INTEGER, shardId: INTEGER, to: INTEGER, term: TERM },
  electLeaders: {},
  noop: {},
});

const PROPOSED = structOf<ProposedCommand>({
  origin: INTEGER,
  session: INTEGER,
  sequence: INTEGER,
  doneBelow: INTEGER,
  command: writtenAs('operation', nested(COMMAND)),
});

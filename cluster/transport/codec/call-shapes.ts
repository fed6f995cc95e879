/**
 * What calls of peers have to look like before anybody carries them out: a field that is missing, or is something else, would
 * otherwise be found out where a shard is led, by a crash. What the bytes of operations and portions say is for those who decode them.
 */

import type { DataCall } from '../../data-messages.js';

type Kind = DataCall['kind'];
type Check = (value: unknown) => boolean;
type FieldsOf<Call> = Call extends DataCall ? Readonly<Record<Exclude<keyof Call, 'kind'>, Check>> : never;
type Shapes = { readonly [K in Kind]: FieldsOf<Extract<DataCall, { kind: K }>> };

const isText: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => typeof value === 'boolean';
const isBytes: Check = (value) => value instanceof Uint8Array;
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isTime: Check = (value) => Number.isFinite(value) && (value as number) >= 0;
const isUntil: Check = (value) => value === 'logged' || value === 'applied';
const isId: Check = (value) => isText(value) || isCount(value) || typeof value === 'bigint';
const isTag = has({ peer: isCount, term: isCount, index: isCount });
const shard = has({ collection: isText, uid: isCount, shardId: isCount });
const shards = { collection: isText, uid: isCount, shards: listOf(isCount) };
const led = { shard, term: isCount };
const replica = { ...led, since: isCount };
const sent = { ...led, startedAt: isCount };
const files = listOf(has({ path: isText, bytes: isCount }));

const fence = has({ startedAt: isCount, from: isCount, term: isCount, sequence: isCount });
const spread = { shardMapVersion: isCount, fence: (value: unknown) => value === undefined || fence(value) };

const SHAPES: Shapes = {
  write: {
    shard,
    operation: isText,
    operations: listOf(isBytes),
    until: (value) => isUntil(value) || value === 'shown',
    timeoutMs: isTime,
    measured: isFlag,
    isTraced: (value) => value === undefined || isFlag(value),
    ...spread,
  },
  missing: { shard, ids: listOf(isId), timeoutMs: isTime, shardMapVersion: isCount },
  barrier: { shard, timeoutMs: isTime, ...spread },
  read: { ...shards, body: isBytes, timeoutMs: isTime, measured: isFlag, ...spread },
  shardMap: { collection: isText, uid: isCount },
  reached: shards,
  shown: { shard, timeoutMs: isTime },
  figures: shards,
  optimizations: { collection: isText, uid: isCount },
  append: { ...replica, leader: isCount, previous: isTag, entries: listOf(has({ tag: isTag, operation: isBytes })), until: isUntil },
  handOver: { ...led, to: isCount },
  compareReplica: { ...led, peerId: isCount },
  position: replica,
  entriesAfter: { ...replica, after: isTag, bytesMax: isCount },
  resetLog: { ...replica, at: isTag },
  rewindLog: { ...replica, to: isTag },
  digest: { ...replica, leaders: has({ at: isTag, buckets: isOf(BigUint64Array), points: isOf(Uint32Array) }) },
  replaceBuckets: { ...replica, bytes: isBytes },
  applySettings: { ...replica, operations: listOf(isBytes) },
  putFile: { ...sent, path: isText, offset: isCount, bytes: isBytes },
  installFiles: { ...sent, files },
  putRestored: { shard, restore: isText, path: isText, offset: isCount, bytes: isBytes },
  installRestored: { shard, restore: isText, at: isTag, files },
  installUntil: { shard, restore: isText, at: isTag, to: isTag, files },
  reachOf: { shard, after: isTag, untilMs: isTime },
};

/** Whether this release knows such calls. */
export function isKnownCall(kind: string): kind is Kind {
  return Object.hasOwn(SHAPES, kind);
}

/** Name of the first field that is not what it should be; null: all are. Fields that nobody knows are passed over. */
export function brokenField(call: { readonly kind: Kind }): string | null {
  const fields: Readonly<Record<string, Check>> = SHAPES[call.kind];
  const values = call as unknown as Readonly<Record<string, unknown>>;
  return Object.keys(fields).find((name) => !(fields[name] as Check)(values[name])) ?? null;
}

function has(fields: Readonly<Record<string, Check>>): Check {
  const checks = Object.entries(fields);
  return (value) =>
    typeof value === 'object' &&
    value !== null &&
    checks.every(([name, check]) => check((value as Readonly<Record<string, unknown>>)[name]));
}

function isOf(kind: typeof BigUint64Array | typeof Uint32Array): Check {
  return (value) => value instanceof kind;
}

function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

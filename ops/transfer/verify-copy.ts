/** Whether a collection has what it was made from: counts, points of a sample, and answers to queries. */

import { createHash } from 'node:crypto';
import { stringifyJson } from '../../protocols/json.js';
import type { ResultOf } from '../../protocols/openapi/operations.js';
import { apiPath, type NodeConnection } from '../client/connection.js';
import type { StoredVector } from './collection-copy.js';
import type { PointSource } from './point-source.js';
import type { ServerRecord } from './server-source.js';

export interface PlacedCollection {
  readonly node: NodeConnection;
  readonly name: string;
}

export interface VerifyOptions {
  /** Null where sharding is automatic. */
  readonly shardKey: unknown;
  readonly vectors: readonly StoredVector[];
}

const SAMPLE = 32;
const QUERIES = 8;
const QUERY_LIMIT = 10;
/** Vectors that are scaled to length 1 may differ in their last digit. */
const DIFFERENCE_MAX = 1e-5;

/** What differs, one line each; empty: nothing that was looked at. Errors: NodeRefusal. */
export async function compareCollections(source: PlacedCollection, target: PlacedCollection, options: VerifyOptions): Promise<string[]> {
  const key = options.shardKey === null ? {} : { shard_key: options.shardKey };
  const label = options.shardKey === null ? '' : ` of shard key ${String(options.shardKey)}`;
  const [there, here] = await Promise.all([source, target].map((one) => countOf(one, key)));
  const problems = there === here ? [] : [`${there} points${label} at the source, ${here} here`];
  const { points: sample } = await ask<ResultOf<'query_points'>>(source, 'query', {
    query: { sample: 'random' },
    limit: SAMPLE,
    with_payload: true,
    with_vector: true,
    ...key,
  });
  const ids = sample.map(({ id }) => id);
  const copies = ids.length === 0 ? [] : await ask<ServerRecord[]>(target, '', { ids, with_payload: true, with_vector: true, ...key });
  const byId = new Map(copies.map((copy) => [String(copy.id), copy]));
  for (const point of sample) {
    const copy = byId.get(String(point.id));
    if (copy === undefined) problems.push(`point ${point.id}${label} is missing`);
    else if (canonical(copy.payload ?? {}) !== canonical(point.payload ?? {}))
      problems.push(`point ${point.id}${label} has another payload`);
    else if (!areAlike(copy.vector ?? {}, point.vector ?? {})) problems.push(`point ${point.id}${label} has other vectors`);
  }
  for (const { name } of options.vectors.filter(({ isWeighed }) => !isWeighed)) {
    for (const point of sample.slice(0, QUERIES)) {
      const query = vectorNamed(point.vector, name);
      if (query === null) continue;
      const body = { query, limit: QUERY_LIMIT, params: { exact: true }, ...(name === '' ? {} : { using: name }), ...key };
      const [theirs, ours] = await Promise.all(
        [source, target].map(async (one) => (await ask<ResultOf<'query_points'>>(one, 'query', body)).points.map(({ score }) => score)),
      );
      if (!areAlike(theirs, ours))
        problems.push(`the query with the vector ${name === '' ? '' : `${name} `}of point ${point.id}${label} has other scores`);
    }
  }
  return problems;
}

/** A digest of all points that does not depend on their order: 16 hexadecimal digits. onPoints: told how many more are in it. */
export async function digestOf(source: PointSource, size: number, onPoints: (count: number) => void): Promise<string> {
  let sum = 0n;
  for await (const { points, shardKey } of source.slices(null, size)) {
    for (const { id, payload, vector } of points as ServerRecord[]) {
      const text = canonical([shardKey, id, payload ?? {}, vector ?? {}]);
      sum = BigInt.asUintN(64, sum + createHash('sha256').update(text).digest().readBigUInt64LE(0));
    }
    onPoints(points.length);
  }
  return sum.toString(16).padStart(16, '0');
}

async function countOf(one: PlacedCollection, key: object): Promise<number> {
  return (await ask<ResultOf<'count_points'>>(one, 'count', { exact: true, ...key })).count;
}

function ask<Result>({ name, node }: PlacedCollection, operation: string, body: object): Promise<Result> {
  const path = apiPath`/collections/${name}/points`;
  return node.result<Result>('POST', operation === '' ? path : `${path}/${operation}`, body);
}

function vectorNamed(vector: unknown, name: string): unknown {
  if (vector === undefined || vector === null) return null;
  if (Array.isArray(vector)) return name === '' ? vector : null;
  return (vector as Record<string, unknown>)[name] ?? null;
}

/** JSON with the keys of objects in order. Whether a number was written as 1.0 is no difference. */
function canonical(value: unknown): string {
  return stringifyJson(sorted(value));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return typeof value[0] === 'number' ? [...value] : value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

/** Numbers within a small difference of each other, everything else equal. */
function areAlike(a: unknown, b: unknown): boolean {
  if (typeof a === 'number' && typeof b === 'number') return Math.abs(a - b) <= DIFFERENCE_MAX * Math.max(1, Math.abs(a), Math.abs(b));
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length || Array.isArray(a) !== Array.isArray(b)) return false;
  return keys.every((key) => areAlike((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]));
}

/** Points of a collection of a server, in the order of their ids, shard key by shard key. */

import { moveFloatMark } from '../../protocols/float-marks.js';
import type { ResultOf } from '../../protocols/openapi/operations.js';
import { apiPath, type NodeConnection } from '../client/connection.js';
import type { PointSlice, PointSource } from './point-source.js';
import { retried } from './point-writer.js';

export type ServerRecord = ResultOf<'scroll_points'>['points'][number];

export interface ServerSourceOptions {
  readonly filter: unknown;
  readonly withVectors: boolean;
  readonly retriesMax: number;
  readonly onRetry: (why: string, pauseMs: number) => void;
}

interface Cursor {
  /** Which of the shard keys. */
  readonly key: number;
  readonly offset: unknown;
}

/** The records themselves: `points` of its slices are as they were answered. Errors: NodeRefusal. */
export async function openServerSource(
  node: NodeConnection,
  collection: string,
  keys: readonly unknown[],
  { filter, withVectors, ...retries }: ServerSourceOptions,
): Promise<PointSource> {
  const places = keys.length === 0 ? [null] : keys;
  const chosen = filter === undefined ? {} : { filter };
  const of = (key: unknown): object => (key === null ? {} : { shard_key: key });
  const ask = <Result>(operation: string, body: object): Promise<Result> =>
    retried(() => node.result<Result>('POST', apiPath`/collections/${collection}/points/${operation}`, body), retries);
  let total = 0;
  for (const key of places) total += (await ask<ResultOf<'count_points'>>('count', { exact: true, ...chosen, ...of(key) })).count;
  return {
    total,
    async *slices(cursor, size): AsyncGenerator<PointSlice> {
      let { key, offset } = (cursor ?? { key: 0, offset: null }) as Cursor;
      for (; key < places.length; key++, offset = null) {
        do {
          const page = await ask<ResultOf<'scroll_points'>>('scroll', {
            limit: size,
            with_payload: true,
            with_vector: withVectors,
            ...chosen,
            ...of(places[key]),
            ...(offset === null ? {} : { offset }),
          });
          offset = page.next_page_offset ?? null;
          const next: Cursor = offset === null ? { key: key + 1, offset: null } : { key, offset };
          yield { points: page.points, shardKey: places[key], cursor: next };
        } while (offset !== null);
      }
    },
  };
}

/** A source of points to write, from one of records. */
export function asPoints(source: PointSource): PointSource {
  return {
    total: source.total,
    async *slices(cursor, size): AsyncGenerator<PointSlice> {
      for await (const slice of source.slices(cursor, size)) yield { ...slice, points: (slice.points as ServerRecord[]).map(asPoint) };
    },
  };
}

function asPoint(record: ServerRecord): object {
  const payload = record.payload ?? {};
  const point = { id: record.id, vector: record.vector ?? {}, payload };
  moveFloatMark(record, 'payload', point, 'payload', payload);
  return point;
}

/** Shard keys of a collection, with the number of their shards; none where sharding is automatic. */
export async function shardKeysOf(node: NodeConnection, collection: string): Promise<{ key: unknown; shards: number }[]> {
  const { shard_keys: keys } = (await node.found<ResultOf<'list_shard_keys'>>('GET', apiPath`/collections/${collection}/shards`)) ?? {};
  if (keys == null || keys.length === 0) return [];
  const info = await node.result<ResultOf<'collection_cluster_info'>>('GET', apiPath`/collections/${collection}/cluster`);
  const shards = [...info.local_shards, ...info.remote_shards];
  return keys.map(({ key }) => ({
    key,
    shards: Math.max(1, new Set(shards.filter((shard) => shard.shard_key === key).map(({ shard_id: id }) => id)).size),
  }));
}

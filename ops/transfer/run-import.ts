/** An import from its first request to the look at what came of it. */

import type { ResultOf } from '../../protocols/openapi/operations.js';
import { apiPath, type NodeConnection } from '../client/connection.js';
import { ProgressBar } from '../client/progress.js';
import { countText } from '../client/tables.js';
import { EXIT, ToolError } from '../client/tool.js';
import { copiedSettings, freeAliases, storedVectors } from './collection-copy.js';
import { copyPoints } from './copy-points.js';
import { type FileOptions, openFileSource } from './file-source.js';
import { inferredVectors } from './inferred-vectors.js';
import type { PointSource } from './point-source.js';
import { PointWriter } from './point-writer.js';
import { asPoints, openServerSource, shardKeysOf } from './server-source.js';
import { readImportState, removeImportState, writeImportState } from './state-file.js';
import { compareCollections, digestOf, type PlacedCollection } from './verify-copy.js';

export interface ImportOptions {
  readonly collection: string;
  readonly add: boolean;
  readonly batch: number;
  readonly parallel: number;
  readonly pointsPerSecond: number | null;
  readonly retriesMax: number;
  readonly statePath: string;
  readonly restart: boolean;
  readonly verify: 'none' | 'sample' | 'full';
  /** Takes lines for whoever looks on. */
  readonly tell: (line: string) => void;
}

export interface ImportResult {
  readonly collection: string;
  /** Points written by this run. */
  readonly points: number;
  /** Points that were written before it was stopped. */
  readonly before: number;
  readonly seconds: number;
  /** Points that the collection has. */
  readonly total: number;
  readonly digests: { readonly source: string; readonly target: string } | null;
  /** What differs from the source. */
  readonly problems: readonly string[];
  /** Aliases of the source that the collection has got. */
  readonly aliases: readonly string[];
}

type Info = ResultOf<'get_collection'>;

/** How often the state is written: what came since is sent again after a kill, and replaces itself. */
const SAVE_EVERY_MS = 1000;
const DIGEST_PAGE = 1000;

/** Errors: ToolError. */
export async function importFile(node: NodeConnection, file: FileOptions, distance: string, options: ImportOptions): Promise<ImportResult> {
  const source = await openFileSource(file);
  const { collection } = options;
  const info = await node.found<Info>('GET', apiPath`/collections/${collection}`);
  if (info === null) {
    const first = await firstPoint(source, file.path);
    const vectors = inferredVectors((first as { vector: unknown }).vector, distance);
    await node.result('PUT', apiPath`/collections/${collection}`, vectors);
    options.tell(`${collection} was made: ${JSON.stringify(vectors)}`);
  }
  const written = await copy(node, source, file.path, options);
  const total = await countHere(node, collection);
  const all = written.points + written.before;
  const isShort = options.verify !== 'none' && total < all && !options.add;
  if (isShort) options.tell(`${countText(all - total)} rows have an id of another row, which the last of them has replaced`);
  return { ...written, collection, total, digests: null, problems: [], aliases: [] };
}

async function firstPoint(source: PointSource, path: string): Promise<object> {
  for await (const { points } of source.slices(null, 1)) return points[0] as object;
  throw new ToolError(`${path} has no rows`, EXIT.refused);
}

/** changed: settings that are to be others than at the source. Errors: ToolError. */
export async function importFromServer(
  node: NodeConnection,
  source: PlacedCollection,
  changed: object,
  options: ImportOptions,
): Promise<ImportResult> {
  const { collection } = options;
  const info = await source.node.result<Info>('GET', apiPath`/collections/${source.name}`);
  const keys = await shardKeysOf(source.node, source.name);
  await prepare(node, info, keys, changed, options);
  const names = keys.map(({ key }) => key);
  const retries = { retriesMax: options.retriesMax, onRetry: (why: string) => options.tell(why) };
  const records = await openServerSource(source.node, source.name, names, { filter: undefined, withVectors: true, ...retries });
  const written = await copy(node, asPoints(records), `${source.node.url}/collections/${source.name}`, options);
  const target = { node, name: collection };
  const problems: string[] = [];
  if (options.verify !== 'none') {
    const vectors = storedVectors(info.config);
    for (const shardKey of names.length === 0 ? [null] : names) {
      problems.push(...(await compareCollections(source, target, { shardKey, vectors })));
    }
  }
  let digests: ImportResult['digests'] = null;
  if (options.verify === 'full') {
    const copies = await openServerSource(node, collection, names, { filter: undefined, withVectors: true, ...retries });
    const bar = new ProgressBar('verifying', 'points', (records.total ?? 0) + (copies.total ?? 0));
    let done = 0;
    const count = (points: number): void => {
      done += points;
      bar.show(done);
    };
    digests = { source: await digestOf(records, DIGEST_PAGE, count), target: await digestOf(copies, DIGEST_PAGE, count) };
    bar.end(done);
    if (digests.source !== digests.target)
      problems.push(`the digest of all points is ${digests.source} at the source, ${digests.target} here`);
  }
  // Clients that ask by an alias should not meet a copy that is not whole.
  const aliases = problems.length === 0 ? await copyAliases(node, source, options) : [];
  return { ...written, collection, total: await countHere(node, collection), digests, problems, aliases };
}

/** Gives the collection the aliases of its source. Names that are taken here stay what they are. */
async function copyAliases(
  node: NodeConnection,
  source: PlacedCollection,
  { collection, tell }: ImportOptions,
): Promise<readonly string[]> {
  const { aliases } = await source.node.result<ResultOf<'get_collection_aliases'>>('GET', apiPath`/collections/${source.name}/aliases`);
  if (aliases.length === 0) return [];
  const here = await node.result<ResultOf<'get_collections_aliases'>>('GET', '/aliases');
  const { collections } = await node.result<ResultOf<'get_collections'>>('GET', '/collections');
  const { free, taken } = freeAliases(aliases, here.aliases, collections, collection);
  for (const [alias, name] of taken) tell(`the alias ${alias} is not copied: it is a name of ${name} here`);
  const actions = free.map((alias) => ({ create_alias: { alias_name: alias, collection_name: collection } }));
  if (actions.length > 0) await node.result('POST', '/collections/aliases', { actions });
  return free;
}

/** Makes what is missing: the collection, its shard keys and payload indexes. Errors: ToolError for a collection with points of its own. */
async function prepare(
  node: NodeConnection,
  info: Info,
  keys: readonly { readonly key: unknown; readonly shards: number }[],
  changed: object,
  options: ImportOptions,
): Promise<void> {
  const { collection } = options;
  const { change, create, indexes } = copiedSettings(info);
  const path = apiPath`/collections/${collection}`;
  const there = await node.found<Info>('GET', path);
  if (there === null) {
    await node.result('PUT', path, { ...create, ...changed });
    if (change !== null) await node.result('PATCH', path, change);
  }
  const keysThere = new Set((await shardKeysOf(node, collection)).map(({ key }) => String(key)));
  for (const { key, shards } of keys) {
    if (!keysThere.has(String(key))) await node.result('PUT', `${path}/shards`, { shard_key: key, shards_number: shards });
  }
  const indexed = new Set(Object.keys(there?.payload_schema ?? {}));
  for (const index of indexes) if (!indexed.has(index.field_name)) await node.result('PUT', `${path}/index?wait=true`, index);
}

interface Written {
  readonly points: number;
  readonly before: number;
  readonly seconds: number;
}

async function copy(node: NodeConnection, source: PointSource, from: string, options: ImportOptions): Promise<Written> {
  const { batch, collection, parallel, pointsPerSecond, restart, retriesMax, statePath, tell } = options;
  const to = `${node.url}/collections/${collection}`;
  if (restart) removeImportState(statePath);
  const state = readImportState(statePath, from, to);
  if (state === null) await refuseFull(node, from, options);
  else tell(`goes on after ${countText(state.points)} points (${statePath})`);
  const before = state?.points ?? 0;
  const bar = new ProgressBar(collection, 'points', source.total, before);
  const onRetry = (why: string, pauseMs: number): void => {
    bar.clear();
    tell(`${why}; again in ${(pauseMs / 1000).toFixed(1)} s`);
  };
  const writer = new PointWriter(node, { collection, pointsPerSecond, retriesMax, onRetry });
  const startedMs = performance.now();
  let savedMs = startedMs;
  let points = 0;
  let cursor: unknown = state?.cursor ?? null;
  const save = (): void => writeImportState(statePath, { version: 1, from, to, cursor, points: before + points });
  save();
  try {
    await copyPoints(source, cursor, {
      batch,
      parallel,
      write: (some, shardKey) => writer.write(some, shardKey),
      onWritten: (slice) => {
        cursor = slice.cursor;
        points += slice.points.length;
        bar.show(before + points);
        if (performance.now() - savedMs < SAVE_EVERY_MS) return;
        savedMs = performance.now();
        save();
      },
    });
  } catch (error) {
    bar.clear();
    save();
    throw error;
  }
  bar.end(before + points);
  removeImportState(statePath);
  return { points, before, seconds: (performance.now() - startedMs) / 1000 };
}

/** From servers, points that are there already would be mixed with theirs. */
async function refuseFull(node: NodeConnection, from: string, { add, collection, statePath }: ImportOptions): Promise<void> {
  if (add || !/^https?:\/\//.test(from)) return;
  const count = await countHere(node, collection);
  if (count === 0) return;
  const what = `${collection} has ${countText(count)} points, and there is no state of an import (${statePath})`;
  throw new ToolError(`${what}: --add adds to them, and replaces those of the same ids`, EXIT.refused);
}

async function countHere(node: NodeConnection, collection: string): Promise<number> {
  const path = apiPath`/collections/${collection}/points/count`;
  return (await node.result<ResultOf<'count_points'>>('POST', path, { exact: true })).count;
}

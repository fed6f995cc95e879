/**
 * Torn and flipped bytes in each kind of file that a node keeps. It starts in spite of them, names the damaged file, and
 * answers rightly or with an error, never with wrong or missing points; what can be built again from the stored points is.
 */

import assert from 'node:assert/strict';
import { cp, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { type TestContext, test } from 'node:test';
import { seededRandom } from '../../ops/random.js';
import type { RestAnswer, RestClient } from '../../ops/rest-client.js';
import {
  type CollectionInfo,
  type NodeUnderTest,
  nodeFor,
  type Point,
  type ScoredPoint,
  sortedById,
  temporaryFolder,
  until,
  untilIndexed,
} from './support.js';

const DIM = 16;
const POINTS = 2200;
/** Written after the index was built: they stay in the appendable segment, and are so many that they have files of their own. */
const LATE_POINTS = 800;
const GROUPS = 10;
const DATABASE_FLIPS = 4;

/** Files that hold nothing but what can be worked out from the stored points. */
const REBUILT = /^(codes|graph|index)\./;

interface Damage {
  readonly name: string;
  readonly inflict: (file: string) => Promise<void>;
}

const DAMAGES: readonly Damage[] = [
  { name: 'cut in half', inflict: (file) => cut(file, (bytes) => Math.floor(bytes / 2)) },
  { name: 'emptied', inflict: (file) => cut(file, () => 0) },
  { name: 'a flipped byte near its begin', inflict: (file) => flip(file, (bytes) => [Math.min(20, bytes - 1)]) },
  { name: 'a flipped byte in its middle', inflict: (file) => flip(file, (bytes) => [Math.floor(bytes / 2)]) },
  { name: 'a flipped byte at its end', inflict: (file) => flip(file, (bytes) => [bytes - 1]) },
];

test('damaged files', { concurrency: 2 }, async (t) => {
  const pristine = await temporaryFolder(t);
  await prepare(t, pristine);
  const files = await kindsOfFiles(join(pristine, 'storage'));
  const kinds = files.map(kindOf);
  for (const wanted of [
    'config.json',
    'format.json',
    'data.mdb',
    'rows/<number>',
    'wal/<number>',
    'segment',
    'rows',
    'payload',
    'vectors.0',
    'codes.0',
    'graph.0',
    'index.group',
  ]) {
    assert.ok(kinds.includes(wanted), `no ${wanted} among ${kinds.join(', ')}`);
  }

  const cases: Promise<void>[] = [];
  for (const file of files) {
    const damages = basename(file) === 'data.mdb' ? databaseDamages(await readFile(join(pristine, 'storage', file))) : DAMAGES;
    for (const damage of damages) {
      cases.push(
        t.test(`${kindOf(file)}, ${damage.name}: never a wrong answer`, async (test) => {
          const folder = await temporaryFolder(test);
          await cp(pristine, folder, { recursive: true });
          await damage.inflict(join(folder, 'storage', file));
          await check(await nodeFor(test, { folder }), file);
        }),
      );
    }
  }
  await Promise.all(cases);
});

/** Fills a folder with a collection that has a sealed and an appendable segment, deleted points and a field index. */
async function prepare(t: TestContext, folder: string): Promise<void> {
  const { client, end } = await nodeFor(t, { folder });
  await client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Euclid' },
    optimizers_config: { indexing_threshold: 80, default_segment_number: 1 },
  });
  await client.result('PUT', '/collections/c/index?wait=true', { field_name: 'group', field_schema: 'integer' });
  const points = allPoints();
  await client.result('PUT', '/collections/c/points?wait=true', { points: points.slice(0, POINTS - LATE_POINTS) });
  await untilIndexed(client, 'c', POINTS - LATE_POINTS);
  await client.result('POST', '/collections/c/points/delete?wait=true', { points: deletedIds() });
  // Only what is logged before it is applied has a record in the log.
  await client.result('PUT', '/collections/c/points', { points: points.slice(POINTS - LATE_POINTS) });
  await until(
    () => client.result<CollectionInfo>('GET', '/collections/c'),
    (info) => info.status === 'green' && info.points_count === POINTS - deletedIds().length,
  );
  assert.deepEqual(await end('SIGTERM'), { code: 0, signal: null });
}

/** Paths below `storage`, one of each kind: all of them, but of one segment only. */
async function kindsOfFiles(storage: string): Promise<string[]> {
  const entries = await readdir(storage, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => relative(storage, join(entry.parentPath, entry.name)));
  const chosen = new Map<string, string>();
  for (const file of files.sort()) if (!basename(file).startsWith('.') && basename(file) !== 'lock.mdb') chosen.set(kindOf(file), file);
  return [...chosen.values()];
}

/** Files that are named by a number are of the kind of their folder. */
function kindOf(file: string): string {
  return /^\d+$/.test(basename(file)) ? `${basename(dirname(file))}/<number>` : basename(file);
}

/** The database trusts its pages, so each of the newest ones is damaged in turn: in its head, and in the records at its end. */
function databaseDamages(bytes: Buffer): Damage[] {
  const inPages = newestPages(bytes).flatMap((page) =>
    [PAGE_LOWER, PAGE_BYTES - 6].map((at) => ({
      name: `a flipped byte at ${at} of page ${page}`,
      inflict: (file: string) => flip(file, () => [page * PAGE_BYTES + at]),
    })),
  );
  const allOver = Array.from({ length: DATABASE_FLIPS }, (_, seed) => ({
    name: `flipped bytes all over it, seed ${seed}`,
    inflict: (file: string) =>
      flip(file, (length) => {
        const random = seededRandom(seed);
        return Array.from({ length: 4 ** seed }, () => random.integer(length));
      }),
  }));
  return [...DAMAGES, ...inPages, ...allOver];
}

const PAGE_BYTES = 4096;
/** Head of a page: its number, u64 LE; the transaction that wrote it, u64 LE; two bytes; its kind, u16 LE; begin of its free space, u16 LE. */
const PAGE_TRANSACTION = 8;
const PAGE_KIND = 18;
const PAGE_LOWER = 20;
const LEAF = 2;
const PAGES_DAMAGED = 12;

/** Leaf pages that were written last: the live ones are among them. */
function newestPages(bytes: Buffer): number[] {
  const pages = Array.from({ length: Math.floor(bytes.length / PAGE_BYTES) }, (_, page) => page);
  const leaves = pages.filter((page) => {
    const at = page * PAGE_BYTES;
    return bytes.readBigUInt64LE(at) === BigInt(page) && bytes.readUInt16LE(at + PAGE_KIND) === LEAF;
  });
  const age = (page: number) => Number(bytes.readBigUInt64LE(page * PAGE_BYTES + PAGE_TRANSACTION));
  return leaves.sort((a, b) => age(b) - age(a)).slice(0, PAGES_DAMAGED);
}

async function cut(file: string, keep: (bytes: number) => number): Promise<void> {
  const { length } = await readFile(file);
  await truncate(file, keep(length));
}

async function flip(file: string, positions: (bytes: number) => number[]): Promise<void> {
  const bytes = await readFile(file);
  for (const position of positions(bytes.length)) bytes[position] = (bytes[position] as number) ^ 0x5a;
  await writeFile(file, bytes);
}

// ------------------------------------------------------------------ checking

async function check(node: NodeUnderTest, file: string): Promise<void> {
  assert.equal((await node.client.call('GET', '/livez')).status, 200);
  const answers = await askAll(node.client);
  const bad = answers.filter((answer) => answer.status !== 200);
  const telemetry = (await node.client.call('GET', '/telemetry?details_level=10')).text;

  for (const answer of bad) assert.ok(answer.status >= 500, `${answer.status} for damage on disk: ${answer.text}`);
  if (bad.length > 0) {
    assert.ok(!REBUILT.test(basename(file)), `answers fail though ${file} can be built again: ${bad[0]?.text}`);
    const named = bad.some((answer) => names(answer.text, file)) || names(telemetry, file) || names(node.log(), file);
    assert.ok(named, `nobody names ${file}:\n${bad[0]?.text}\n${node.log()}`);
  }

  if (REBUILT.test(basename(file))) {
    assert.ok(names(telemetry, file) || names(node.log(), file), `nobody names ${file}:\n${node.log()}`);
    await until(
      () => node.client.result<CollectionInfo>('GET', '/collections/c'),
      (info) => info.status === 'green' && info.indexed_vectors_count >= POINTS - LATE_POINTS - deletedIds().length,
    );
    for (const answer of await askAll(node.client)) assert.equal(answer.status, 200, answer.text);
  }
}

/** Whether a text names the file by its name, with a boundary on both sides, so that `rows` isn't found in «growsize». */
function names(text: string, file: string): boolean {
  // A mere number would be found anywhere.
  if (/^\d+$/.test(basename(file))) return text.includes(file.split(sep).slice(-2).join('/'));
  const name = basename(file).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(^|[^\\w.])${name}($|[^\\w])`).test(text) || text.includes(file.split(sep).join('/'));
}

/** Asks in several ways; each answer is right in full, or an error. */
async function askAll(client: RestClient): Promise<RestAnswer[]> {
  const wanted = livePoints();
  const ids = allPoints().map((point) => point.id);
  const everything = { with_payload: true, with_vector: true };
  const target = vectorFor(424_242);

  const retrieved = await client.call('POST', '/collections/c/points', { ids, ...everything });
  if (retrieved.status === 200) assert.deepEqual(sortedById(resultOf<Point[]>(retrieved)), wanted);

  const scrolled = await client.call('POST', '/collections/c/points/scroll', { limit: POINTS, ...everything });
  if (scrolled.status === 200) assert.deepEqual(resultOf<{ points: Point[] }>(scrolled).points, wanted);

  const counted = await client.call('POST', '/collections/c/points/count', { exact: true });
  if (counted.status === 200) assert.deepEqual(resultOf(counted), { count: wanted.length });

  const answers = [retrieved, scrolled, counted];
  for (const group of [null, 3]) {
    const matching = wanted.filter((point) => group === null || point.payload?.group === group);
    const filter = group === null ? undefined : { must: [{ key: 'group', match: { value: group } }] };
    for (const exact of [true, false]) {
      const body = { query: target, limit: 10, filter, params: { exact, hnsw_ef: 200 }, with_payload: true };
      const answer = await client.call('POST', '/collections/c/points/query', body);
      if (answer.status === 200) checkNearest(resultOf<{ points: ScoredPoint[] }>(answer).points, matching, target, exact);
      answers.push(answer);
    }
  }
  return answers;
}

function checkNearest(found: readonly ScoredPoint[], matching: readonly Point[], target: readonly number[], exact: boolean): void {
  const distances = new Map(matching.map((point) => [point.id, distance(point.vector ?? [], target)]));
  for (const point of found) {
    const right = distances.get(point.id);
    assert.ok(right !== undefined, `point ${point.id} must not be found`);
    assert.ok(Math.abs(right - point.score) < 1e-3, `score ${point.score} of point ${point.id} must be ${right}`);
    assert.deepEqual(point.payload, payloadFor(Number(point.id)));
  }
  const nearest = [...distances].sort((a, b) => a[1] - b[1]).slice(0, found.length);
  assert.equal(found.length, 10);
  const hits = nearest.filter(([id]) => found.some((point) => point.id === id)).length;
  assert.ok(hits >= (exact ? 10 : 9), `only ${hits} of the 10 nearest`);
}

function distance(a: readonly number[], b: readonly number[]): number {
  return Math.sqrt(a.reduce((sum, value, i) => sum + (value - (b[i] as number)) ** 2, 0));
}

function resultOf<T>(answer: RestAnswer): T {
  return (answer.body as { result: T }).result;
}

// ------------------------------------------------------------------ data

function allPoints(): Point[] {
  return Array.from({ length: POINTS }, (_, id) => ({ id, payload: payloadFor(id), vector: vectorFor(id) }));
}

function livePoints(): Point[] {
  const deleted = new Set(deletedIds());
  return allPoints().filter((point) => !deleted.has(point.id as number));
}

function deletedIds(): number[] {
  return Array.from({ length: 20 }, (_, i) => i * 73);
}

function payloadFor(id: number): Record<string, unknown> {
  return { group: id % GROUPS, title: `point number ${id}` };
}

/** Components that a float32 holds exactly. */
function vectorFor(id: number): number[] {
  const random = seededRandom(id);
  return Array.from({ length: DIM }, () => random.integer(4096) / 16 - 128);
}

/**
 * Many small collections on one node: what making them, stopping, starting and idling cost, how soon each answers, how long reports of all hold
 * others up, and searches in some of them beside creations and deletions.
 */

import { readdirSync } from 'node:fs';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { seededRandom } from '../../random.js';
import { RestClient } from '../../rest-client.js';
import { memory } from '../common/measure.js';
import type { MeasuredRow } from '../common/measured-row.js';
import { quantile } from '../common/quantile.js';
import { readThreads, treeUse } from '../common/threads.js';
import { timed } from '../common/timed.js';

export interface CollectionsSettings {
  readonly count: number;
  /** Of them, those that are searched beside creations and deletions. */
  readonly searched: number;
  readonly seconds: number;
  readonly seed: number;
}

const DIM = 32;
const POINTS = 10;
const CONNECTIONS = 4;
const IDLE_MS = 10_000;
/** Beyond this long unused, collections are asleep (`storage/pool/sleep-policy.ts`). */
const ASLEEP_MS = 40_000;

export async function measureCollections(settings: CollectionsSettings, folder: string): Promise<MeasuredRow[]> {
  const { count } = settings;
  const random = seededRandom(settings.seed).unit;
  const rows: MeasuredRow[] = [];
  const add = (what: string, unit: string, value: number): void => {
    rows.push({ what, unit, value });
  };
  const first = await startNodeProcess({ folder });
  const maker = new RestClient(first.port);
  const emptyMegabytes = memory(first.pid)?.rss ?? 0;
  const cpuBefore = cpuMsOf(first);
  const making: number[] = [];
  for (let at = 0; at < count; at++) {
    making.push(await timed(() => maker.result('PUT', `/collections/c${at}`, { vectors: { size: DIM, distance: 'Dot' } })));
  }
  add('creation, CPU', 'ms', (cpuMsOf(first) - cpuBefore) / count);
  add('creation, p50', 'ms', quantileOf(making, 0.5));
  add('creation, p99', 'ms', quantileOf(making, 0.99));
  await spread(count, async (at) => {
    const points = Array.from({ length: POINTS }, (_, id) => ({ id, vector: vectorOf(random), payload: { n: id } }));
    await maker.result('PUT', `/collections/c${at}/points?wait=true`, { points });
  });
  maker.close();
  add('stop', 'ms', await timed(() => first.end('SIGTERM')));

  const node = await startNodeProcess({ folder, readyTimeoutMs: 300_000 });
  const client = new RestClient(node.port);
  add('start until ready', 'ms', node.readyMs);
  add('start until ready, CPU', 'ms', cpuMsOf(node));
  add('first count after ready', 'ms', await timed(() => client.result('POST', '/collections/c0/points/count', {})));
  const point = { points: [{ id: POINTS, vector: vectorOf(random) }] };
  add('first upsert after ready', 'ms', await timed(() => client.result('PUT', `/collections/c${count - 1}/points?wait=true`, point)));
  const firstCounts: number[] = [];
  const cpuReady = cpuMsOf(node);
  const all = await timed(() =>
    spread(count, async (at) => {
      firstCounts.push(await timed(() => client.result('POST', `/collections/c${at}/points/count`, {})));
    }),
  );
  add('start until every collection has answered', 'ms', node.readyMs + all);
  add('first answer of a collection, p99', 'ms', quantileOf(firstCounts, 0.99));
  add('first answer of a collection, CPU', 'ms', (cpuMsOf(node) - cpuReady) / count);
  for (const path of ['/telemetry?details_level=1', '/metrics', '/collections']) {
    const { beside, ms } = await besideReport(node, client, path);
    add(`${path.split('?')[0]}`, 'ms', ms);
    add(`slowest \`/livez\` beside ${path.split('?')[0]}`, 'ms', beside);
  }
  await searchBesideChanges(client, settings, random, add);
  await new Promise((done) => setTimeout(done, ASLEEP_MS));
  add('descriptors when idle', '', descriptorsOf(node));
  add('memory of a collection when idle', 'kB', (((memory(node.pid)?.rss ?? 0) - emptyMegabytes) * 1024) / count);
  const idle = cpuMsOf(node);
  await new Promise((done) => setTimeout(done, IDLE_MS));
  add('CPU when idle', '%', (100 * (cpuMsOf(node) - idle)) / IDLE_MS);
  client.close();
  add('stop after that', 'ms', await timed(() => node.end('SIGTERM')));
  return rows;
}

async function searchBesideChanges(
  client: RestClient,
  { searched, seconds }: CollectionsSettings,
  random: () => number,
  add: (what: string, unit: string, value: number) => void,
): Promise<void> {
  const search = (at: number) =>
    client.result('POST', `/collections/c${at % searched}/points/query`, { query: vectorOf(random), limit: 3 });
  for (let at = 0; at < searched; at++) await search(at);
  const measured = async (): Promise<number[]> => {
    const times: number[] = [];
    const endMs = performance.now() + seconds * 1000;
    for (let at = 0; performance.now() < endMs; at++) times.push(await timed(() => search(at)));
    return times;
  };
  add('search in one of those in use, p99', 'ms', quantileOf(await measured(), 0.99));
  let goesOn = true;
  const changes = (async () => {
    let changed = 0;
    for (; goesOn; changed++) {
      await client.result('PUT', '/collections/passing', { vectors: { size: DIM, distance: 'Dot' } });
      await client.result('DELETE', '/collections/passing');
    }
    return changed;
  })();
  const times = await measured();
  goesOn = false;
  add('the same beside creations and deletions, p99', 'ms', quantileOf(times, 0.99));
  add('creations and deletions meanwhile, per second', '', (2 * (await changes)) / seconds);
}

/** Milliseconds of a report, and of the slowest small request beside it. */
async function besideReport(node: RunningNode, client: RestClient, path: string): Promise<{ ms: number; beside: number }> {
  const other = new RestClient(node.port, 1);
  let goesOn = true;
  const asking = (async () => {
    let slowest = 0;
    while (goesOn) slowest = Math.max(slowest, await timed(() => other.call('GET', '/livez')));
    return slowest;
  })();
  const ms = await timed(async () => {
    // Dropped as it comes: to put so much together would hold up the small requests of this process, too.
    for await (const _ of await client.download(path));
  });
  goesOn = false;
  const beside = await asking;
  other.close();
  return { ms, beside };
}

async function spread(count: number, run: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) await run(at);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, lane));
}

function vectorOf(random: () => number): number[] {
  return Array.from({ length: DIM }, () => Math.round(1000 * random()) / 1000);
}

function quantileOf(values: readonly number[], part: number): number {
  return quantile(Float64Array.from(values).sort(), part);
}

/** Of all its threads, since the process began. */
function cpuMsOf({ pid }: RunningNode): number {
  return treeUse(new Map(), readThreads(pid)).cpuUs / 1000;
}

/** NaN where the system does not tell. */
function descriptorsOf({ pid }: RunningNode): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return Number.NaN;
  }
}

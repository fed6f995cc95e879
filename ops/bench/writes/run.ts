/**
 * Writes of one collection beside a long operation of another one on the same node: an update of the payload of all its points, the index of a
 * field, and a build that is published. On a small machine one thread makes the writes of all collections.
 */

import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { seededRandom } from '../../random.js';
import { RestClient } from '../../rest-client.js';
import { quantile } from '../common/quantile.js';
import { untilBuilt } from '../common/until-built.js';

export interface BesideSettings {
  readonly count: number;
  readonly seed: number;
  /** Milliseconds of a measurement of an idle node. */
  readonly idleMs: number;
  /** The server of another checkout. */
  readonly program?: string;
}

export interface BesideRow {
  readonly what: string;
  readonly writes: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
  /** How long the operation took; null for an idle node. */
  readonly tookMs: number | null;
}

const DIM = 32;
const BATCH = 2000;
const NO_BUILDS = { max_optimization_threads: 0 };

export async function measureBeside(settings: BesideSettings, folder: string): Promise<BesideRow[]> {
  const { count, idleMs, program } = settings;
  const node = await startNodeProcess({ folder, ...(program === undefined ? {} : { program }) });
  const client = new RestClient(node.port);
  const rows: BesideRow[] = [];
  const add = async (what: string, operation: (() => Promise<unknown>) | null): Promise<void> => {
    rows.push(await measured(node, what, operation ?? (() => new Promise((done) => setTimeout(done, idleMs))), operation !== null));
    const row = rows.at(-1) as BesideRow;
    process.stderr.write(
      `${what}: ${row.writes} writes, p50 ${row.p50Ms.toFixed(2)}, p99 ${row.p99Ms.toFixed(2)}, slowest ${row.slowestMs.toFixed(1)} ms${row.tookMs === null ? '' : `; took ${row.tookMs.toFixed(0)} ms`}\n`,
    );
  };
  await client.result('PUT', '/collections/small', { vectors: { size: DIM, distance: 'Dot' } });
  await client.result('PUT', '/collections/big', { vectors: { size: DIM, distance: 'Dot' }, optimizers_config: NO_BUILDS });
  await fill(client, count, seededRandom(settings.seed).unit);
  await add('idle', null);
  await add('field index over appendable rows', () =>
    client.result('PUT', '/collections/big/index?wait=true', { field_name: 'city', field_schema: 'keyword' }),
  );
  await add('idle again', null);
  await add('set payload of all points, appendable rows', () => setAll(client, 'one'));
  await add('idle again', null);
  await add('build and its publication', async () => {
    await client.result('PATCH', '/collections/big', { optimizers_config: { max_optimization_threads: 1, default_segment_number: 1 } });
    await untilBuilt(client, 'big', { pollMs: 100, quietMs: 1000 });
  });
  await add('idle again', null);
  await add('set payload of all points, sealed rows', () => setAll(client, 'two'));
  client.close();
  await node.end('SIGTERM');
  return rows;
}

async function fill(client: RestClient, count: number, random: () => number): Promise<void> {
  for (let from = 0; from < count; from += BATCH) {
    const points = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => ({
      id: from + at,
      vector: vectorOf(random),
      payload: { n: from + at, city: `city ${(from + at) % 100}`, text: 'some words that a payload has' },
    }));
    await client.result('PUT', '/collections/big/points?wait=true', { points });
  }
}

function setAll(client: RestClient, value: string): Promise<unknown> {
  return client.result('POST', '/collections/big/points/payload?wait=true&timeout=600', {
    payload: { state: value },
    filter: { must_not: [{ has_id: [2 ** 40] }] },
  });
}

/** One client writes one point after the other for as long as the operation goes on. */
async function measured(node: RunningNode, what: string, operation: () => Promise<unknown>, isLong: boolean): Promise<BesideRow> {
  const writer = new RestClient(node.port, 1);
  const times: number[] = [];
  let goesOn = true;
  const write = async (at: number): Promise<number> => {
    const started = performance.now();
    await writer.result('PUT', '/collections/small/points?wait=true', {
      points: [{ id: at % 1000, vector: Array.from({ length: DIM }, () => 1) }],
    });
    return performance.now() - started;
  };
  for (let at = 0; at < 20; at++) await write(at);
  const writing = (async () => {
    for (let at = 0; goesOn; at++) times.push(await write(at));
  })();
  const started = performance.now();
  await operation();
  const tookMs = performance.now() - started;
  goesOn = false;
  await writing;
  writer.close();
  const sorted = Float64Array.from(times).sort();
  return {
    what,
    writes: times.length,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    slowestMs: sorted.at(-1) as number,
    tookMs: isLong ? tookMs : null,
  };
}

function vectorOf(random: () => number): number[] {
  return Array.from({ length: DIM }, () => Math.round(1000 * random()) / 1000);
}

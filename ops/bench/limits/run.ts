/**
 * A collection that is asked at 20 times the rate that it allows (strict mode), beside quiet reads of another collection: how quickly it
 * refuses, what a refusal costs, and what the others notice of it. What the others notice of any load stands beside it: of as many health
 * checks, which are the cheapest requests that there are, and of no more searches than are allowed.
 */

import { join } from 'node:path';
import { startNodeProcess } from '../../node-process.js';
import { seededRandom } from '../../random.js';
import { RestClient } from '../../rest-client.js';
import { startHelper } from '../common/helper.js';
import type { LoadJob, LoadResult, ToLoad } from '../common/jobs.js';
import { getMessage } from '../common/protobuf.js';
import { grpcRequest, jsonRequest, writeRequests } from '../common/requests.js';
import { readThreads, type TreeUse, treeUse } from '../common/threads.js';
import { median } from '../requests/slices.js';

export interface LimitsSettings {
  /** Of each slice: without and with the load. */
  readonly seconds: number;
  /** Pairs of slices for each load. */
  readonly rounds: number;
  readonly seed: number;
}

/** Medians over the rounds. */
export interface LimitsRow {
  readonly what: string;
  readonly askedPerSecond: number;
  /** Share of the answers. */
  readonly refused: number;
  /** Of the refused ones. */
  readonly refusedP99Ms: number;
  /** What the node used for each request of the load, over what it used without it: all threads, and the main thread. Microseconds of CPU. */
  readonly cpuUs: number;
  readonly mainUs: number;
  /** Of reads of the other collection, before the load and beside it, and the median of their ratios. */
  readonly idleP99Ms: number;
  readonly otherP99Ms: number;
  readonly ratio: number;
}

const DIM = 128;
const POINTS = 10_000;
export const ALLOWED_PER_SECOND = 100;
export const TIMES = 20;
const QUIET_PER_SECOND = 200;
const QUIET_CONNECTIONS = 4;
const HAMMER_CONNECTIONS = 16;
/** Points of a request that empties a bucket, each of which costs a token. */
const DRAIN_POINTS = 50;

/** What the limited collection is asked. */
interface Load {
  readonly what: string;
  readonly job: Pick<LoadJob, 'kind' | 'ports' | 'protocol' | 'requestsFile' | 'requests' | 'requestsMin' | 'keepBodies'>;
  readonly perSecond: number;
  /** The bucket that it takes from; null: it is not limited. */
  readonly bucket: 'read' | 'write' | null;
}

/** One pair of slices. */
type Pair = Omit<LimitsRow, 'what'>;

export async function measureLimits({ rounds, seconds, seed }: LimitsSettings, folder: string): Promise<LimitsRow[]> {
  const { unit } = seededRandom(seed);
  const vector = (): number[] => Array.from({ length: DIM }, () => Math.round(1000 * unit()) / 1000);
  const node = await startNodeProcess({ folder });
  const client = new RestClient(node.port);
  const hammer = startHelper<ToLoad>('load');
  const quiet = startHelper<ToLoad>('load');
  const jobOf = (name: string, protocol: LoadJob['protocol'], requests: readonly Buffer[]): Load['job'] => {
    const requestsFile = join(folder, `${name}.requests`);
    writeRequests(requestsFile, requests);
    const ports = [protocol === 'rest' ? node.port : node.grpcPort];
    return { kind: 'load', ports, protocol, requestsFile, requests: Number.POSITIVE_INFINITY, requestsMin: 1, keepBodies: false };
  };
  const searches = (collection: string): Buffer[] =>
    Array.from({ length: 100 }, () =>
      jsonRequest('POST', `/collections/${collection}/points/query`, JSON.stringify({ query: vector(), limit: 10 })),
    );
  try {
    for (const name of ['limited', 'other']) {
      await client.result('PUT', `/collections/${name}`, { vectors: { size: DIM, distance: 'Dot' } });
      for (let from = 0; from < POINTS; from += 500) {
        const points = Array.from({ length: 500 }, (_, at) => ({ id: from + at, vector: vector() }));
        await client.result('PUT', `/collections/${name}/points?wait=true`, { points });
      }
    }
    const limit = ALLOWED_PER_SECOND * 60;
    await client.result('PATCH', '/collections/limited', {
      strict_mode_config: { enabled: true, read_rate_limit: limit, write_rate_limit: limit },
    });
    const others = jobOf('others', 'rest', searches('other'));
    const readOthers = async (): Promise<{ readonly result: LoadResult; readonly use: TreeUse }> => {
      const before = readThreads(node.pid);
      const job = { ...others, connections: QUIET_CONNECTIONS, seconds, perSecond: QUIET_PER_SECOND };
      const result = checked(await quiet.run<LoadResult>(job));
      return { result, use: treeUse(before, readThreads(node.pid)) };
    };
    const write = JSON.stringify({ points: [{ id: 1, vector: vector() }] });
    const limitedSearches = jobOf('searches', 'rest', searches('limited'));
    const drained = Array.from({ length: DRAIN_POINTS }, (_, id) => ({ id, vector: vector() }));
    const ids = JSON.stringify({ ids: drained.map(({ id }) => id) });
    const drains = {
      read: jobOf('drain-reads', 'rest', [jsonRequest('POST', '/collections/limited/points', ids)]),
      write: jobOf('drain-writes', 'rest', [
        jsonRequest('PUT', '/collections/limited/points?wait=true', JSON.stringify({ points: drained })),
      ]),
    };
    const perSecond = TIMES * ALLOWED_PER_SECOND;
    const loads: readonly Load[] = [
      { what: 'health checks', job: jobOf('health', 'rest', [jsonRequest('GET', '/healthz', '')]), perSecond, bucket: null },
      { what: 'searches over REST, only the allowed ones', job: limitedSearches, perSecond: ALLOWED_PER_SECOND, bucket: 'read' },
      { what: 'searches over REST', job: limitedSearches, perSecond, bucket: 'read' },
      {
        what: 'points by id over gRPC',
        job: jobOf('points', 'grpc', [grpcRequest('Get', getMessage('limited', [1], true))]),
        perSecond,
        bucket: 'read',
      },
      {
        what: 'upserts over REST',
        job: jobOf('upserts', 'rest', [jsonRequest('PUT', '/collections/limited/points?wait=true', write)]),
        perSecond,
        bucket: 'write',
      },
    ];
    /** When a bucket was empty. */
    const emptiedMs = { read: Number.NEGATIVE_INFINITY, write: Number.NEGATIVE_INFINITY };
    const pairOf = async ({ bucket, job, perSecond }: Load): Promise<Pair> => {
      const idle = await readOthers();
      const connections = HAMMER_CONNECTIONS;
      if (bucket !== null) {
        // What has come back meanwhile is used up first.
        const filled = Math.min(limit, (ALLOWED_PER_SECOND * (performance.now() - emptiedMs[bucket])) / 1000);
        const many = { ...drains[bucket], requests: Math.ceil((1.5 * filled) / DRAIN_POINTS) };
        const few = { ...job, requests: 2 * DRAIN_POINTS };
        for (const drain of [many, few]) await hammer.run({ ...drain, connections, seconds: Number.POSITIVE_INFINITY });
      }
      const hammering = hammer.run<LoadResult>({ ...job, connections, seconds: Number.POSITIVE_INFINITY, perSecond });
      const beside = await readOthers();
      hammer.post({ kind: 'stop' });
      const asked = await hammering;
      if (bucket !== null) emptiedMs[bucket] = performance.now();
      const ofRequest = (part: 'cpuUs' | 'mainUs'): number => {
        const perSecond = (of: typeof idle): number => of.use[part] / of.result.seconds;
        return (perSecond(beside) - perSecond(idle)) / (asked.requests / asked.seconds);
      };
      return {
        askedPerSecond: asked.requests / asked.seconds,
        refused: asked.errors / asked.requests,
        refusedP99Ms: asked.errorsP99,
        cpuUs: ofRequest('cpuUs'),
        mainUs: ofRequest('mainUs'),
        idleP99Ms: idle.result.p99,
        otherP99Ms: beside.result.p99,
        ratio: beside.result.p99 / idle.result.p99,
      };
    };
    const pairs = new Map<Load, Pair[]>(loads.map((load) => [load, []]));
    // The first round warms the node's compiler and is not counted.
    for (let round = 0; round <= rounds; round++)
      for (const load of round % 2 === 0 ? loads : [...loads].reverse()) {
        const pair = await pairOf(load);
        if (round > 0) pairs.get(load)?.push(pair);
      }
    return [...pairs].map(([{ what }, all]) => ({ what, ...medians(all) }));
  } finally {
    hammer.end();
    quiet.end();
    client.close();
    await node.end('SIGTERM');
  }
}

function medians(pairs: readonly Pair[]): Pair {
  const of = (figure: keyof Pair): number => median(pairs.map((pair) => pair[figure]));
  return {
    askedPerSecond: of('askedPerSecond'),
    refused: of('refused'),
    refusedP99Ms: of('refusedP99Ms'),
    cpuUs: of('cpuUs'),
    mainUs: of('mainUs'),
    idleP99Ms: of('idleP99Ms'),
    otherP99Ms: of('otherP99Ms'),
    ratio: of('ratio'),
  };
}

function checked(result: LoadResult): LoadResult {
  if (result.errors > 0) throw new Error(`${result.errors} quiet reads failed; the first: ${result.firstError}`);
  return result;
}

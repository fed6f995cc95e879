/**
 * A collection that is asked at 20 times the rate that it allows (strict mode), beside quiet reads of another collection: how quickly it
 * refuses, and what the others notice of it.
 */

import { join } from 'node:path';
import { startNodeProcess } from '../../node-process.js';
import { seededRandom } from '../../random.js';
import { RestClient } from '../../rest-client.js';
import { startHelper } from '../common/helper.js';
import type { LoadJob, LoadResult, ToLoad } from '../common/jobs.js';
import { getMessage } from '../common/protobuf.js';
import { grpcRequest, jsonRequest, writeRequests } from '../common/requests.js';

export interface LimitsSettings {
  readonly seconds: number;
  readonly seed: number;
}

export interface LimitsRow {
  readonly what: string;
  readonly allowedPerSecond: number;
  readonly askedPerSecond: number;
  /** Share of the answers. */
  readonly refused: number;
  readonly refusedP99Ms: number;
  /** Of reads of the other collection, on the idle node before and beside it. */
  readonly idleP99Ms: number;
  readonly otherP99Ms: number;
}

const DIM = 128;
const POINTS = 10_000;
const ALLOWED_PER_SECOND = 100;
const TIMES = 20;
const QUIET_PER_SECOND = 200;
const QUIET_CONNECTIONS = 4;
const HAMMER_CONNECTIONS = 16;

export async function measureLimits({ seconds, seed }: LimitsSettings, folder: string): Promise<LimitsRow[]> {
  const { unit } = seededRandom(seed);
  const vector = (): number[] => Array.from({ length: DIM }, () => Math.round(1000 * unit()) / 1000);
  const node = await startNodeProcess({ folder });
  const client = new RestClient(node.port);
  const hammer = startHelper<ToLoad>('load');
  const quiet = startHelper<ToLoad>('load');
  const jobOf = (name: string, protocol: LoadJob['protocol'], requests: readonly Buffer[]) => {
    const requestsFile = join(folder, `${name.replaceAll(' ', '-')}.requests`);
    writeRequests(requestsFile, requests);
    const ports = [protocol === 'rest' ? node.port : node.grpcPort];
    return { kind: 'load', ports, protocol, requestsFile, requests: Number.POSITIVE_INFINITY, requestsMin: 1, keepBodies: false } as const;
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
    const readOthers = (): Promise<LoadResult> =>
      quiet.run({ ...others, connections: QUIET_CONNECTIONS, seconds, perSecond: QUIET_PER_SECOND });
    const write = JSON.stringify({ points: [{ id: 1, vector: vector() }] });
    const kinds = [
      ['searches over REST', jobOf('searches', 'rest', searches('limited'))],
      ['points by id over gRPC', jobOf('points', 'grpc', [grpcRequest('Get', getMessage('limited', [1], true))])],
      ['upserts over REST', jobOf('upserts', 'rest', [jsonRequest('PUT', '/collections/limited/points?wait=true', write)])],
    ] as const;
    await readOthers();
    const rows: LimitsRow[] = [];
    for (const [what, job] of kinds) {
      const idle = checked(await readOthers());
      // A bucket that was filled meanwhile is used up first.
      await hammer.run({ ...job, connections: HAMMER_CONNECTIONS, requests: 1.5 * limit, seconds: Number.POSITIVE_INFINITY });
      const perSecond = TIMES * ALLOWED_PER_SECOND;
      const hammering = hammer.run<LoadResult>({ ...job, connections: HAMMER_CONNECTIONS, seconds: Number.POSITIVE_INFINITY, perSecond });
      const beside = checked(await readOthers());
      hammer.post({ kind: 'stop' });
      const asked = await hammering;
      rows.push({
        what,
        allowedPerSecond: ALLOWED_PER_SECOND,
        askedPerSecond: asked.requests / asked.seconds,
        refused: asked.errors / asked.requests,
        refusedP99Ms: asked.errorsP99,
        idleP99Ms: idle.p99,
        otherP99Ms: beside.p99,
      });
    }
    return rows;
  } finally {
    hammer.end();
    quiet.end();
    client.close();
    await node.end('SIGTERM');
  }
}

function checked(result: LoadResult): LoadResult {
  if (result.errors > 0) throw new Error(`${result.errors} quiet reads failed; the first: ${result.firstError}`);
  return result;
}

/** Whether a slow request stands before quick ones: latencies of quick requests alone and beside heavy scans. */

import { join } from 'node:path';
import { type Dataset, rowText } from '../common/dataset.js';
import { startHelper } from '../common/helper.js';
import type { LoadResult, ToLoad } from '../common/jobs.js';
import { jsonRequest, writeRequests } from '../common/requests.js';
import { type Operation, readOperations } from './operations.js';
import { type Bench, type Contender, runSlice } from './slices.js';

export interface CrowdRow {
  readonly side: string;
  readonly protocol: Operation['protocol'];
  /** Quick requests, without heavy ones and beside them. */
  readonly alone: Pick<LoadResult, 'p50' | 'p99'>;
  readonly crowded: Pick<LoadResult, 'p50' | 'p99'>;
  /** Answers a second, without quick requests and beside them. */
  readonly heavyAlone: number;
  readonly heavyBeside: number;
}

const QUICK = 'count of one match';
const QUICK_CONNECTIONS = 16;
const HEAVY_CONNECTIONS = 4;
const HEAVY_DIFFERENT = 50;
const SECONDS = 4;

export async function measureCrowd(bench: Bench, collection: string, dataset: Dataset): Promise<CrowdRow[]> {
  const quick = readOperations(collection, dataset).filter(({ name }) => name === QUICK);
  const heavyFile = join(bench.folder, 'heavy.requests');
  writeRequests(heavyFile, heavyRequests(collection, dataset));
  const rows: CrowdRow[] = [];
  for (const operation of quick) for (const side of bench.sides) rows.push(await crowdRow(bench, side, operation, heavyFile));
  return rows;
}

async function crowdRow(bench: Bench, side: Contender, quick: Operation, heavyFile: string): Promise<CrowdRow> {
  const limits = { connections: QUICK_CONNECTIONS, seconds: SECONDS };
  const alone = (await runSlice(bench, side, quick, limits)).result;
  const heavy = startHelper<ToLoad>('load');
  const load = {
    kind: 'load',
    ports: [side.node.port],
    protocol: 'rest',
    requestsFile: heavyFile,
    connections: HEAVY_CONNECTIONS,
  } as const;
  const scans = (seconds: number): Promise<LoadResult> =>
    heavy.run<LoadResult>({ ...load, requests: Number.POSITIVE_INFINITY, seconds, requestsMin: 1, keepBodies: false });
  try {
    const heavyAlone = checked(await scans(SECONDS));
    const beside = scans(Number.POSITIVE_INFINITY);
    const crowded = (await runSlice(bench, side, quick, limits)).result;
    heavy.post({ kind: 'stop' });
    const heavyBeside = checked(await beside);
    return { side: side.name, protocol: quick.protocol, alone: latency(alone), crowded: latency(crowded), heavyAlone, heavyBeside };
  } finally {
    heavy.end();
  }
}

/** Answers a second. */
function checked({ errors, firstError, requests, seconds }: LoadResult): number {
  if (errors > 0) throw new Error(`${errors} heavy requests failed; the first: ${firstError}`);
  return requests / seconds;
}

/** Exact searches: each scores every point. */
function heavyRequests(collection: string, dataset: Dataset): Buffer[] {
  return Array.from({ length: HEAVY_DIFFERENT }, (_, i) =>
    jsonRequest(
      'POST',
      `/collections/${collection}/points/query`,
      `{"query":${rowText(dataset.queries, dataset.dim, i % dataset.queryCount)},"limit":10,"params":{"exact":true}}`,
    ),
  );
}

/** What is kept of it: not the answers. */
function latency({ p50, p99 }: LoadResult): Pick<LoadResult, 'p50' | 'p99'> {
  return { p50, p99 };
}

/** Whether a slow request stands before quick ones: latencies of quick requests alone and beside heavy scans. */

import { join } from 'node:path';
import { type Dataset, rowText } from '../common/dataset.js';
import { startHelper } from '../common/helper.js';
import type { LoadResult, ToLoad } from '../common/jobs.js';
import { jsonRequest, writeRequests } from '../common/requests.js';
import { type Operation, readOperations } from './operations.js';
import { type Bench, runSlice } from './slices.js';

export interface CrowdRow {
  readonly side: string;
  readonly alone: Pick<LoadResult, 'p50' | 'p99'>;
  readonly crowded: Pick<LoadResult, 'p50' | 'p99'>;
}

const QUICK = 'count of one match';
const QUICK_CONNECTIONS = 16;
const HEAVY_CONNECTIONS = 4;
const HEAVY_DIFFERENT = 50;
const SECONDS = 4;

export async function measureCrowd(bench: Bench, collection: string, dataset: Dataset): Promise<CrowdRow[]> {
  const quick = readOperations(collection, dataset).find(({ name, protocol }) => name === QUICK && protocol === 'rest') as Operation;
  const limits = { connections: QUICK_CONNECTIONS, seconds: SECONDS };
  const requestsFile = join(bench.folder, 'heavy.requests');
  writeRequests(requestsFile, heavyRequests(collection, dataset));
  const rows: CrowdRow[] = [];
  for (const side of bench.sides) {
    const alone = (await runSlice(bench, side, quick, limits)).result;
    const heavy = startHelper<ToLoad>('load');
    try {
      const scans = heavy.run<LoadResult>({
        kind: 'load',
        ports: [side.node.port],
        protocol: 'rest',
        requestsFile,
        connections: HEAVY_CONNECTIONS,
        requests: Number.POSITIVE_INFINITY,
        seconds: Number.POSITIVE_INFINITY,
        requestsMin: 1,
        keepBodies: false,
      });
      const crowded = (await runSlice(bench, side, quick, limits)).result;
      heavy.post({ kind: 'stop' });
      const { errors, firstError } = await scans;
      if (errors > 0) throw new Error(`${errors} heavy requests failed; the first: ${firstError}`);
      rows.push({ side: side.name, alone, crowded });
    } finally {
      heavy.end();
    }
  }
  return rows;
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

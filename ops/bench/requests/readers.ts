/** How throughput and CPU follow the number of reader threads. */

import type { Dataset } from '../common/dataset.js';
import { type Operation, readOperations } from './operations.js';
import { type Bench, type Contender, restart, runSlice } from './slices.js';

export interface ReadersRow {
  readonly readers: number;
  readonly perSecond: number;
  /** Microseconds of CPU per search. */
  readonly cpuUs: number;
  readonly mainUs: number;
  /** Of each other thread that used at least a hundredth of the whole. */
  readonly othersUs: readonly number[];
  readonly p99: number;
}

const READERS = [1, 2, 4];
const CONNECTIONS = 16;
const SECONDS = 3;
const SHOWN_SHARE_MIN = 0.01;

/** Searches on this checkout's server, started anew for each number of readers. */
export async function measureReaders(bench: Bench, collection: string, dataset: Dataset): Promise<ReadersRow[]> {
  const side = bench.sides[0] as Contender;
  const search = readOperations(collection, dataset).find(({ name, protocol }) => name === 'search' && protocol === 'rest') as Operation;
  const rows: ReadersRow[] = [];
  for (const readers of READERS) {
    await restart(side, { SERVICE__STORAGE__PERFORMANCE__MAX_SEARCH_THREADS: String(readers) });
    await runSlice(bench, side, search, { connections: CONNECTIONS, seconds: 1 });
    const { result, use, units } = await runSlice(bench, side, search, { connections: CONNECTIONS, seconds: SECONDS });
    rows.push({
      readers,
      perSecond: units / result.seconds,
      cpuUs: use.cpuUs / units,
      mainUs: use.mainUs / units,
      othersUs: use.othersUs.filter((cpuUs) => cpuUs > use.cpuUs * SHOWN_SHARE_MIN).map((cpuUs) => cpuUs / units),
      p99: result.p99,
    });
  }
  return rows;
}

/** What a large collection needs, as tables. */

import type { Machine } from '../common/measure.js';
import { rowCells } from '../common/measured-row.js';
import { table } from '../common/table.js';
import type { LargeReport } from './run.js';

export interface LargeChapter extends LargeReport {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  readonly count: number;
  readonly dim: number;
  readonly tokens: number;
  /** What a cgroup gives the client and the node together; null: all of the machine. */
  readonly limitGigabytes: number | null;
}

export function largeMarkdown({
  command,
  count,
  date,
  dim,
  limitGigabytes,
  machine,
  rows,
  searches,
  seed,
  tokens,
  truth,
}: LargeChapter): string {
  const set = `${count.toLocaleString('en')} × ${tokens === 1 ? '' : `${tokens} × `}${dim}`;
  const limited = limitGigabytes === null ? '' : `, of which a cgroup gives ${limitGigabytes} to node, client and pages of files`;
  return [
    `### A large collection, ${set}`,
    '',
    `Synthetic, Cosine, one node. ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB${limited}, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    ...table(['what', set], rows.map(rowCells)),
    '',
    `Searches for 10, one after the other over REST; recall next to ${truth}:`,
    '',
    ...table(
      ['`hnsw_ef`', 'recall', 'p50, ms', 'p99, ms', 'CPU, ms', 'reads', 'kB read', 'kB from the disk'],
      searches.map(({ cpuMs, ef, p50Ms, p99Ms, reads, recall }) => [
        String(ef),
        recall.toFixed(3),
        p50Ms.toFixed(2),
        p99Ms.toFixed(2),
        cpuMs.toFixed(2),
        reads.calls.toFixed(1),
        (reads.bytes / 1000).toFixed(0),
        (reads.diskBytes / 1000).toFixed(0),
      ]),
    ),
    '',
  ].join('\n');
}

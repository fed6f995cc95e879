/** The results of the API's parts as a table. */

import type { Machine } from '../common/measure.js';
import { table, whole } from '../common/table.js';
import type { ApiRow } from './run.js';

export interface ApiReport {
  readonly dataset: string;
  readonly description: string;
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  readonly rows: readonly ApiRow[];
}

export function apiMarkdown({ machine, date, seed, command, rows }: ApiReport): string {
  const cells = rows.map((row) => [
    row.part,
    row.what,
    whole(row.perSecond),
    row.cpuMs?.toFixed(3) ?? '',
    row.p50.toFixed(2),
    row.p99.toFixed(2),
    row.recall?.toFixed(4) ?? '',
    row.ratio === null ? '' : `× ${row.ratio.toFixed(2)} of ${row.yardstick}`,
  ]);
  const head = ['part', 'what', 'per second', 'CPU ms', 'p50 ms', 'p99 ms', 'recall@10', 'next to'];
  return [
    '### The other parts of the API',
    '',
    `${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    ...table(head, cells),
    '',
  ].join('\n');
}

/** The results of clusters as a table. */

import type { Machine } from '../common/measure.js';
import { table } from '../common/table.js';
import type { ClusterRow } from './run.js';

export interface ClusterReport {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly rows: readonly ClusterRow[];
}

/** Few values are shown one by one, more as how they are spread. */
const SHOWN_MAX = 5;

export function clusterMarkdown({ machine, date, command, rows }: ClusterReport): string {
  return [
    '### Clusters',
    '',
    `All nodes on one machine: ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, Node ${machine.node}; ${date}; \`${command}\``,
    '',
    ...table(
      ['cluster', 'what', 'measured', 'unit', 'next to'],
      rows.map(({ nextTo, part, unit, values, what }) => [part, what, valuesText(values), unit, nextTo]),
    ),
    '',
  ].join('\n');
}

function valuesText(values: readonly number[]): string {
  if (values.length <= SHOWN_MAX) return values.map(shown).join(', ');
  const sorted = [...values].sort((one, other) => one - other);
  const at = (share: number): string => shown(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] as number);
  return `median ${at(0.5)}, 95 % ${at(0.95)}, most ${at(1)} (of ${values.length})`;
}

function shown(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 0 });
}

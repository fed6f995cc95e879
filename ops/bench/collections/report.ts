/** What many collections cost, as a table. */

import type { Machine } from '../common/measure.js';
import { type MeasuredRow, rowCells } from '../common/measured-row.js';
import { table } from '../common/table.js';

export interface CollectionsChapter {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  readonly count: number;
  readonly searched: number;
  readonly rows: readonly MeasuredRow[];
}

export function collectionsMarkdown({ command, count, date, machine, rows, searched, seed }: CollectionsChapter): string {
  return [
    '### Many collections',
    '',
    `${count} collections of 10 points × 32 on one node, ${searched} of them in use. ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    ...table(['what', `${count} collections`], rows.map(rowCells)),
    '',
  ].join('\n');
}

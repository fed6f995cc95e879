/** What graphs of pairs and of insertions cost and find, as a table. */

import type { Machine } from '../common/measure.js';
import { table, whole } from '../common/table.js';
import type { GraphsRow } from './run.js';

export interface GraphsChapter {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  readonly rows: readonly GraphsRow[];
}

export function graphsMarkdown({ command, date, machine, rows, seed }: GraphsChapter): string {
  const efs = rows[0]?.walks.map(({ ef }) => ef) ?? [];
  const head = ['rows', 'made of', 'CPU a row, µs', 'links a row', ...efs.map((ef) => `ef ${ef}: recall@10, rows scored`)];
  return [
    '### Making of graphs',
    '',
    `8-bit codes, squared Euclidean distance, m 16, ef_construct 100, one thread, without a node; insertions are usearch's, on the same codes in the same order. ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    ...table(
      head,
      rows.map(({ linksEach, microsecondsEach, set, walks, way }) => [
        ...[set, way, microsecondsEach.toFixed(0), linksEach.toFixed(1)],
        ...walks.map(({ recall, scored }) => `${recall.toFixed(4)}, ${whole(scored)}`),
      ]),
    ),
    '',
  ].join('\n');
}

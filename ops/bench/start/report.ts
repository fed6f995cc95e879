/** What a start costs, as a table. */

import type { Machine } from '../common/measure.js';
import { table, whole } from '../common/table.js';
import type { StartFigures } from './run.js';

export interface StartChapter {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly description: string;
  readonly seed: number;
  readonly idleMs: number;
  /** This checkout first, the one beside it second. */
  readonly sides: readonly StartFigures[];
  /** What the checkout beside this one is, for instance its commit. */
  readonly besideName: string | null;
}

export function startMarkdown(chapter: StartChapter): string {
  const { besideName, command, date, description, idleMs, machine, seed, sides } = chapter;
  const names = sides.map(({ side }) => (side === 'this' ? 'this one' : String(besideName)));
  const row = (what: string, cellOf: (figures: StartFigures) => string): string[] => [what, ...sides.map(cellOf)];
  return [
    '### What a start costs',
    '',
    `Medians; CPU of all threads of the node. In place: ${description}. ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    ...table(
      ['what', ...names],
      [
        row('ready on an empty folder, ms', ({ emptyReadyMs }) => whole(emptyReadyMs)),
        row('CPU until then, ms', ({ emptyCpuMs }) => whole(emptyCpuMs)),
        row(`resident ${idleMs / 1000} s later, MB`, ({ idleMegabytes }) => (idleMegabytes === null ? '' : whole(idleMegabytes))),
        row('ready with the data in place, ms', ({ filledReadyMs }) => whole(filledReadyMs)),
        row('CPU until then, ms', ({ filledCpuMs }) => whole(filledCpuMs)),
        row('a search of the first thousand, CPU µs', ({ firstUs }) => whole(firstUs)),
        row('a search of a later thousand, CPU µs', ({ laterUs }) => whole(laterUs)),
        row('first / later', ({ firstUs, laterUs }) => `× ${(firstUs / laterUs).toFixed(2)}`),
      ],
    ),
    '',
  ].join('\n');
}

/** A collection that is asked more often than it allows, as a table. */

import type { Machine } from '../common/measure.js';
import { table, whole } from '../common/table.js';
import { ALLOWED_PER_SECOND, type LimitsRow, TIMES } from './run.js';

export interface LimitsChapter {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  readonly rows: readonly LimitsRow[];
}

export function limitsMarkdown({ command, date, machine, rows, seed }: LimitsChapter): string {
  const head = ['asked', 'asked/s', 'refused', 'refused p99 ms', 'CPU µs', 'its main thread', 'others p99 ms, idle', 'beside', 'ratio'];
  return [
    '### What others notice of a collection beyond its limit',
    '',
    `A collection that allows ${ALLOWED_PER_SECOND} requests a second is asked ${TIMES} times as many. ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    'Medians of pairs of slices, without and with the load. CPU is what the node used more for each request of the load, over all threads.',
    '',
    ...table(head, rows.map(cellsOf)),
  ].join('\n');
}

function cellsOf({ askedPerSecond, cpuUs, idleP99Ms, mainUs, otherP99Ms, ratio, refused, refusedP99Ms, what }: LimitsRow): string[] {
  return [
    what,
    whole(askedPerSecond),
    `${(100 * refused).toFixed(1)} %`,
    refused === 0 ? '' : refusedP99Ms.toFixed(2),
    cpuUs.toFixed(1),
    mainUs.toFixed(1),
    idleP99Ms.toFixed(2),
    otherP99Ms.toFixed(2),
    `× ${ratio.toFixed(2)}`,
  ];
}

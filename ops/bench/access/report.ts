/** What access control, the audit log and TLS cost, as a table. */

import type { Machine } from '../common/measure.js';
import { table, whole } from '../common/table.js';
import type { AccessCostRow } from './run.js';

export interface AccessChapter {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly description: string;
  readonly seed: number;
  readonly rows: readonly AccessCostRow[];
}

export function accessMarkdown({ command, date, description, machine, rows, seed }: AccessChapter): string {
  const head = ['door', 'operation', 'access', 'per second', 'CPU µs', 'added µs', 'ratio', 'p50 ms', 'p99 ms'];
  return [
    '### What access control, the audit log and TLS cost',
    '',
    `${description}. ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    'Per request, 4 connections; medians of slices. CPU is that of all threads of the node. Added and ratio: medians over pairs with the slice of the',
    'node without keys in the same round.',
    '',
    ...table(head, rows.map(cellsOf)),
  ].join('\n');
}

function cellsOf({ access, addedUs, figures, operation, protocol, ratio }: AccessCostRow): string[] {
  const { cpuUs, p50, p99, perSecond } = figures;
  const door = protocol === 'rest' ? 'REST' : 'gRPC';
  return [
    door,
    operation,
    access,
    whole(perSecond),
    cpuUs.toFixed(1),
    addedUs.toFixed(1),
    ratio.toFixed(3),
    p50.toFixed(2),
    p99.toFixed(2),
  ];
}

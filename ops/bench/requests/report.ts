/** The fixed cost of requests as a table. */

import type { Machine } from '../common/measure.js';
import { table } from '../common/table.js';
import type { RequestReport } from './run.js';
import type { Figures, RequestRow } from './slices.js';

export interface RequestsChapter extends RequestReport {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly description: string;
  readonly seed: number;
  /** What the checkout beside this one is, for instance its commit. */
  readonly besideName: string | null;
}

export function requestsMarkdown(chapter: RequestsChapter): string {
  const { machine, date, seed, command, description, besideName } = chapter;
  const head = ['door', 'operation', 'connections', 'per second', 'CPU µs', 'of it main thread', 'wake-ups', 'p50 ms', 'p99 ms'];
  if (besideName !== null) head.push(`CPU µs of ${besideName}`, 'its main thread', 'ratio of CPU');
  return [
    '### What a request costs',
    '',
    `${description}. ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    ...chapter.wakeUps.map(
      ({ underWay, cpuUs, wallUs }) =>
        `- A message to another thread and back, ${underWay} under way: ${shown(cpuUs)} µs of CPU, ${shown(wallUs)} µs on the clock.`,
    ),
    ...chapter.starts.map(
      ({ side, readyMs, idleMegabytes }) =>
        `- Start on an empty folder (${side === 'this' ? 'this one' : besideName}): ready after ${shown(readyMs)} ms, ${idleMegabytes === null ? '' : `${shown(idleMegabytes)} MB resident`}.`,
    ),
    '',
    'Per request, or per point of an upload; medians of slices. CPU is that of all threads of the node. A wake-up is a thread that slept and went on.',
    '',
    ...table(head, chapter.rows.map(cellsOf)),
    '',
    'Quick requests (a count of one match) over 16 connections, alone and beside heavy ones (exact searches over REST, 4 connections):',
    '',
    ...table(
      ['door', 'server', 'p50 ms', 'p99 ms', 'p50 ms beside', 'p99 ms beside', 'p99 beside / alone', 'heavy per second alone', 'beside'],
      chapter.crowd.map(({ side, protocol, alone, crowded, heavyAlone, heavyBeside }) => [
        protocol === 'rest' ? 'REST' : 'gRPC',
        side === 'this' ? 'this one' : String(besideName),
        ...[alone.p50, alone.p99, crowded.p50, crowded.p99].map((value) => value.toFixed(2)),
        `× ${(crowded.p99 / alone.p99).toFixed(2)}`,
        shown(heavyAlone),
        shown(heavyBeside),
      ]),
    ),
    '',
    'Searches over 16 connections by the number of reader threads (`storage.performance.max_search_threads`):',
    '',
    ...table(
      ['readers', 'per second', 'CPU µs', 'of it main thread', 'busiest other threads', 'p99 ms'],
      chapter.readers.map(({ readers, perSecond, cpuUs, mainUs, othersUs, p99 }) => [
        String(readers),
        shown(perSecond),
        shown(cpuUs),
        shown(mainUs),
        othersUs.map(shown).join(', '),
        p99.toFixed(2),
      ]),
    ),
    '',
  ].join('\n');
}

function cellsOf({ protocol, operation, connections, here, beside, ratio }: RequestRow): string[] {
  const door = protocol === 'rest' ? 'REST' : 'gRPC';
  const cells = [door, operation, String(connections), shown(here.perSecond), ...cpuCells(here), here.wakeUps.toFixed(1)];
  cells.push(here.p50.toFixed(2), here.p99.toFixed(2));
  if (beside !== null) cells.push(...cpuCells(beside), ratio === null ? '' : `× ${ratio.toFixed(2)}`);
  return cells;
}

function cpuCells({ cpuUs, mainUs }: Figures): [string, string] {
  return [shown(cpuUs), shown(mainUs)];
}

function shown(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 });
}

/** What snapshots cost, as tables. */

import type { Machine } from '../common/measure.js';
import { table } from '../common/table.js';
import type { Waits } from '../common/waits.js';
import type { SnapshotsMeasured, SnapshotsRow } from './run.js';

export interface SnapshotsChapter extends SnapshotsMeasured {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  readonly description: string;
}

export function snapshotsMarkdown({ archiveMegabytes, command, date, description, machine, rows, seed }: SnapshotsChapter): string {
  const afresh = rows.find(({ what }) => what.includes('index'))?.seconds ?? Number.NaN;
  const cells = (row: SnapshotsRow): string[] => [
    row.what,
    row.seconds.toFixed(1),
    row.cpuSeconds.toFixed(1),
    row.megabytesPerSecond === null ? '' : row.megabytesPerSecond.toFixed(0),
    gain(row.before.anonymous, row.peak.anonymous),
    gain(row.before.resident, row.peak.resident),
    row.sameAnswers === null ? '' : `× ${(afresh / row.seconds).toFixed(1)}`,
    row.sameAnswers === null ? '' : `${(100 * row.sameAnswers).toFixed(1)} %`,
  ];
  return [
    '### Snapshots',
    '',
    `${description}; an archive of ${archiveMegabytes.toFixed(0)} MB. ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    'Memory in MB before, and the most over it. «Faster» is than uploading and indexing afresh.',
    '',
    ...table(['what', 's', 'CPU s', 'MB/s', 'anonymous', 'resident', 'faster', 'same answers'], rows.map(cells)),
    '',
    'Meanwhile on another collection, milliseconds (p50, p99, slowest). The last column is how late the timer of the measuring process itself was at most.',
    '',
    ...table(
      ['beside', 'writes of one point', 'searches', '`/readyz` (main thread)', 'timer'],
      rows.map(({ probed: { main, ownLateMs, searches, writes }, what }) => [
        what,
        waitsText(writes),
        waitsText(searches),
        waitsText(main),
        ownLateMs.toFixed(0),
      ]),
    ),
    '',
  ].join('\n');
}

function gain(before: number, peak: number): string {
  return `${before.toFixed(0)} + ${Math.max(0, peak - before).toFixed(0)}`;
}

function waitsText({ max, p50, p99 }: Waits): string {
  return `${p50.toFixed(1)}, ${p99.toFixed(1)}, ${max.toFixed(0)}`;
}

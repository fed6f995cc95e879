/** The results of shards and replicas as tables. */

import type { Machine } from '../common/measure.js';
import { table, whole } from '../common/table.js';
import type { MoveRow, PeakMemory } from './moves.js';
import type { ReshardingRow } from './resharding.js';
import type { ThroughputFigures, ThroughputRow } from './throughput.js';

/** One part of the report as it was measured last, by a run of its own. */
export interface Measured<Row> {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly description: string;
  readonly rows: readonly Row[];
}

export interface ReplicationReport {
  /** besideName: of the other checkout; null, and absent in earlier results: there was none. */
  readonly throughput?: Measured<ThroughputRow> & { readonly besideName?: string | null };
  readonly moves?: Measured<MoveRow>;
  readonly resharding?: Measured<ReshardingRow>;
}

export function replicationMarkdown({ moves, resharding, throughput }: ReplicationReport): string {
  return [
    '### Shards and replicas',
    '',
    ...(throughput === undefined ? [] : throughputLines(throughput)),
    ...(moves === undefined ? [] : moveLines(moves)),
    ...(resharding === undefined ? [] : reshardingLines(resharding)),
  ].join('\n');
}

function throughputLines(measured: NonNullable<ReplicationReport['throughput']>): string[] {
  const name = measured.besideName ?? null;
  const compared = name === null ? [] : [`CPU ms, ${name}`, 'ratio', `recall, ${name}`];
  const head = ['nodes', 'what', 'connections', 'per second', 'CPU ms', 'of 1 node', 'p50 ms', 'p99 ms', 'recall', ...compared];
  const rows = measured.rows.map((row) => [
    row.nodes,
    row.what,
    String(row.connections),
    whole(row.perSecond),
    row.cpuMs.toFixed(3),
    row.cpuOfOneMs === null ? '' : `× ${(row.cpuMs / row.cpuOfOneMs).toFixed(2)}`,
    milliseconds(row.p50),
    milliseconds(row.p99),
    recallText(row),
    ...(row.beside === undefined ? [] : [row.beside.cpuMs.toFixed(3), `× ${row.ratio?.toFixed(2)}`, recallText(row.beside)]),
  ]);
  return titledTable(
    '6 shards on three nodes next to one; CPU is that of all nodes together; medians of slices in turn.',
    measured,
    head,
    rows,
  );
}

function moveLines(measured: Measured<MoveRow>): string[] {
  const head = [
    'what',
    's',
    's until indexed',
    'source, MB (most)',
    'target, MB (most)',
    'searches/s',
    'p50 ms',
    'p99 ms',
    'p99 idle',
    'recall before',
    'after',
    'note',
  ];
  const rows = measured.rows.map((row) => [
    row.what,
    row.seconds.toFixed(1),
    row.secondsUntilQuiet.toFixed(1),
    memoryText(row.source),
    memoryText(row.target),
    whole(row.queriesPerSecond),
    milliseconds(row.p50),
    milliseconds(row.p99),
    milliseconds(row.idleP99),
    share(row.recallBefore),
    share(row.recallAfter),
    row.note,
  ]);
  return titledTable('One shard goes from node to node while it is searched through the third one.', measured, head, rows);
}

function reshardingLines(measured: Measured<ReshardingRow>): string[] {
  const head = ['what', 's', 's until indexed', 'most MB of a node', 'searches/s', 'p50 ms', 'p99 ms', 'recall before', 'after'];
  const rows = measured.rows.map((row) => [
    row.what,
    row.seconds.toFixed(1),
    row.secondsUntilQuiet.toFixed(1),
    whole(row.peak),
    whole(row.queriesPerSecond),
    milliseconds(row.p50),
    milliseconds(row.p99),
    share(row.recallBefore),
    share(row.recallAfter),
  ]);
  return titledTable('Resharding while the collection is searched.', measured, head, rows);
}

function titledTable(title: string, measured: Measured<unknown>, head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const { command, date, description, machine } = measured;
  const facts = `${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, Node ${machine.node}; ${date}`;
  return [`${title} ${description}; ${facts}; \`${command}\``, '', ...table(head, rows), ''];
}

function recallText({ recall }: ThroughputFigures): string {
  return recall === undefined ? '' : recall.toFixed(4);
}

function memoryText({ before, peak }: PeakMemory): string {
  return `${whole(before)} → ${whole(peak)}`;
}

/** Nothing where it was not measured. */
function milliseconds(value: number | null): string {
  return value === null || Number.isNaN(value) || value === 0 ? '' : value.toFixed(2);
}

function share(value: number | null): string {
  return value === null || Number.isNaN(value) ? '' : value.toFixed(4);
}

/** What a stream of points costs, as a table. */

import type { Machine } from '../common/measure.js';
import { type SideFigure, sidesTable } from '../common/table.js';
import { SEARCHES_PER_SECOND, STREAM_BATCH, STREAM_DIM, type StreamFigures } from './run.js';
import { LATE_MS } from './send.js';

export interface StreamChapter {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  readonly pointsPerSecond: number;
  /** Of the stream. */
  readonly seconds: number;
  /** This checkout first, the one beside it second. */
  readonly sides: readonly StreamFigures[];
  /** What the checkout beside this one is, for instance its commit. */
  readonly besideName: string | null;
}

const FIGURES: readonly SideFigure<StreamFigures>[] = [
  ['points sent', 0, ({ points }) => points],
  ['points per second', 0, ({ points, sent }) => points / sent.seconds],
  [`batches sent ${LATE_MS} ms or more after they were due, %`, 1, ({ sent }) => (100 * sent.late) / sent.delays.count],
  ['the latest of them, ms', 0, ({ sent }) => sent.delays.max],
  ['CPU during the stream, s', 1, ({ streamCpu }) => streamCpu.all],
  ['of it builds, s', 1, ({ streamCpu }) => streamCpu.builds],
  ['end of the stream until indexed, s', 1, ({ indexSeconds }) => indexSeconds],
  ['CPU meanwhile, s', 1, ({ indexCpu }) => indexCpu.all],
  ['of it builds, s', 1, ({ indexCpu }) => indexCpu.builds],
  ['CPU until indexed, s', 1, ({ indexCpu, streamCpu }) => streamCpu.all + indexCpu.all],
  ['of it builds, s', 1, buildSeconds],
  ['CPU of builds per point, µs', 1, perPointUs],
  ['segments', 0, ({ segments }) => segments],
  ['most memory until indexed, MB', 0, ({ peakMegabytes }) => peakMegabytes],
  ['write of a batch, p50 ms', 2, ({ sent }) => sent.writes.p50],
  ['write of a batch, p99 ms', 2, ({ sent }) => sent.writes.p99],
  ['the same from when it was due, p99 ms', 2, ({ sent }) => sent.writesSinceDue.p99],
  ['searches during the stream', 0, ({ searches }) => searches.count],
  ['search during the stream, p50 ms', 2, ({ searches }) => searches.p50],
  ['search during the stream, p99 ms', 2, ({ searches }) => searches.p99],
  ['search at rest, p50 ms', 2, ({ searchesAtRest }) => searchesAtRest.p50],
  ['search at rest, p99 ms', 2, ({ searchesAtRest }) => searchesAtRest.p99],
  ['p50 during the stream / at rest', 2, ({ searches, searchesAtRest }) => searches.p50 / searchesAtRest.p50],
  ['p99 during the stream / at rest', 2, ({ searches, searchesAtRest }) => searches.p99 / searchesAtRest.p99],
];

export function streamMarkdown(chapter: StreamChapter): string {
  const { besideName, command, date, machine, pointsPerSecond, seconds, seed, sides } = chapter;
  return [
    '### A stream of points',
    '',
    `Synthetic, × ${STREAM_DIM}, Cosine: ${pointsPerSecond.toLocaleString('en')} points a second for ${seconds} s in batches of ${STREAM_BATCH} over gRPC, ${SEARCHES_PER_SECOND} searches a second over REST. ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\``,
    '',
    ...sidesTable(FIGURES, sides, besideName),
    '',
  ].join('\n');
}

function buildSeconds({ indexCpu, streamCpu }: StreamFigures): number | null {
  return indexCpu.builds === null ? null : (streamCpu.builds ?? 0) + indexCpu.builds;
}

function perPointUs(figures: StreamFigures): number | null {
  const seconds = buildSeconds(figures);
  return seconds === null ? null : (1e6 * seconds) / figures.points;
}

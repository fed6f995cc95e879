/** What the engine needs for a collection, as a table for each data set. */

import { atRecall } from '../common/at-recall.js';
import type { Machine, Memory } from '../common/measure.js';
import { type SideFigure, sidesTable } from '../common/table.js';
import { type EngineFigures, FILTER_EF } from './run.js';

export interface EngineChapter {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  /** Milliseconds of rest before memory is looked at. */
  readonly restMs: number;
  /** Of each data set this checkout, then the one beside it. */
  readonly figures: readonly EngineFigures[];
  /** What the checkout beside this one is, for instance its commit. */
  readonly besideName: string | null;
}

type Figure = SideFigure<EngineFigures>;

const FIGURES: readonly Figure[] = [
  ['first point sent until indexed, s', 1, ({ indexedSeconds }) => indexedSeconds],
  ['CPU meanwhile, s', 1, ({ indexedCpu }) => indexedCpu],
  ['most memory until then, MB', 0, ({ peak }) => peak],
  ['memory at rest, MB', 0, ({ atRest }) => atRest?.rss ?? null],
  ['without pages of files', 0, ({ atRest }) => withoutFiles(atRest)],
  ['memory after searches, MB', 0, ({ searched }) => searched?.rss ?? null],
  ['without pages of files', 0, ({ searched }) => withoutFiles(searched)],
  ['memory after a restart and searches, MB', 0, ({ restarted }) => restarted?.rss ?? null],
  ['without pages of files', 0, ({ restarted }) => withoutFiles(restarted)],
  ['disk, MB', 0, ({ disk }) => disk],
  ['fixed CPU of a search, ms', 3, ({ fixedCpuMs }) => fixedCpuMs],
  ['CPU beyond it at recall 0.95, ms', 3, ({ searches }) => atRecall(searches, 0.95)],
  ['at recall 0.99, ms', 3, ({ searches }) => atRecall(searches, 0.99)],
];

function withoutFiles(memory: Memory | null): number | null {
  return memory === null ? null : memory.rss - memory.file;
}

export function engineMarkdown({ besideName, command, date, figures, machine, restMs, seed }: EngineChapter): string {
  const datasets = [...new Set(figures.map(({ dataset }) => dataset))];
  return [
    '### The engine',
    '',
    `${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\`. CPU is that of the whole node, of searches over REST with 4 connections, medians of slices in turn; memory is that after ${restMs / 1000} s without requests; at a recall: between the values of \`hnsw_ef\` on both sides of it.`,
    '',
    ...datasets.flatMap((dataset) =>
      section(
        dataset,
        figures.filter((figure) => figure.dataset === dataset),
        besideName,
      ),
    ),
  ].join('\n');
}

function section(dataset: string, sides: readonly EngineFigures[], besideName: string | null): string[] {
  const first = sides[0] as EngineFigures;
  const figures: readonly Figure[] = [
    ...FIGURES,
    ...first.searches.flatMap(({ ef }, at): Figure[] => [
      [`recall at ef ${ef}`, 4, ({ searches }) => searches[at]?.recall ?? null],
      ['CPU, ms', 3, ({ searches }) => searches[at]?.cpuMs ?? null],
    ]),
    ...first.filtered.flatMap(({ filter }, at): Figure[] => [
      [`recall at ef ${FILTER_EF}, filter of ${filter}`, 4, ({ filtered }) => filtered[at]?.recall ?? null],
      ['CPU, ms', 3, ({ filtered }) => filtered[at]?.cpuMs ?? null],
    ]),
    [`CPU with ${first.ungraphed.points.toLocaleString('en')} points, too few for a graph, ms`, 3, ({ ungraphed }) => ungraphed.cpuMs],
  ];
  return [dataset, '', ...sidesTable(figures, sides, besideName), ''];
}

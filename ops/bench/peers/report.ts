/** Libraries next to a node, as a table for each data set. */

import { atRecall } from '../common/at-recall.js';
import type { Machine } from '../common/measure.js';
import { table } from '../common/table.js';
import { PEERS_FILTER_EF, type PeerFigures } from './run.js';

export interface PeersChapter {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  /** Milliseconds of rest before memory is looked at. */
  readonly restMs: number;
  /** Of the libraries. */
  readonly versions: readonly string[];
  readonly figures: readonly PeerFigures[];
}

const RECALLS = [0.95, 0.99] as const;

export function peersMarkdown({ command, date, figures, machine, restMs, seed, versions }: PeersChapter): string {
  const datasets = [...new Set(figures.map(({ dataset }) => dataset))];
  return [
    '### Next to libraries',
    '',
    `${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, started by Node ${machine.node}; ${date}; seed ${seed}; \`${command}\`; ${versions.join(', ')}. Memory is that after all searches and ${restMs / 1000} s of rest. CPU of a search in ms, medians of slices in turn; at a recall: between the values of \`hnsw_ef\` on both sides of it; with a filter at \`hnsw_ef\` ${PEERS_FILTER_EF}, with the recall in brackets.`,
    '',
    ...datasets.flatMap((dataset) =>
      section(
        dataset,
        figures.filter((figure) => figure.dataset === dataset),
      ),
    ),
  ].join('\n');
}

function section(dataset: string, figures: readonly PeerFigures[]): string[] {
  const filters = figures[0]?.filtered.map(({ filter }) => filter) ?? [];
  const head = ['', 'built, s', 'CPU, s', 'memory, MB', 'without files', 'disk, MB'];
  const rows = figures.map(({ built, filtered, name, searched, searches }) => [
    name,
    shown(built?.seconds, 1),
    shown(built?.cpuSeconds, 1),
    shown(searched?.rss, 0),
    shown(searched === null ? undefined : searched.rss - searched.file, 0),
    shown(built?.disk, 0),
    ...RECALLS.map((recall) => shown(atRecall(searches, recall) ?? undefined, 3)),
    ...filters.map((filter) => filteredCell(filtered, filter)),
  ]);
  return [
    dataset,
    '',
    ...table([...head, ...RECALLS.map((recall) => `recall ${recall}`), ...filters.map((name) => `filter of ${name}`)], rows),
    '',
  ];
}

function filteredCell(filtered: PeerFigures['filtered'], wanted: string): string {
  const search = filtered.find(({ filter }) => filter === wanted);
  return search === undefined ? '' : `${search.cpuMs.toFixed(3)} (${search.recall.toFixed(3)})`;
}

function shown(value: number | undefined, digits: number): string {
  return value === undefined ? '' : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** What runs there are, and in which order and company they are made. Decisions only. */

import type { Kind, Mode } from './kinds.js';

/** `work`: calls of a node that runs fail, until it has ended. `start`: calls of a process from its first on, after a kill. */
export const PHASES = ['work', 'start'] as const;
export type Phase = (typeof PHASES)[number];

export const PLACES = ['one', 'first', 'second'] as const;
/** A node alone, or one of the two of a cluster. */
export type Place = (typeof PLACES)[number];

export interface Run {
  readonly place: Place;
  readonly phase: Phase;
  readonly kind: Kind;
  readonly mode: Mode;
  /** From 1. */
  readonly n: number;
}

export function nameOf(run: Run): string {
  return `${sortOf(run)}.${run.n}`;
}

export function sortOf({ place, phase, kind, mode }: Run): string {
  return [place, phase, kind.name, mode].join('.');
}

/** By place, phase, kind and mode. */
export function sorts(runs: readonly Run[]): Map<string, Run[]> {
  return by(runs, sortOf);
}

/** How many parts `inLayers` puts behind each other. */
const LAYERS = 40;

/**
 * From coarse to fine: the first layer has N of each sort that are far apart, and each layer fills the gaps of those before. So whatever time is
 * given, each sort has its share, and those with few N are through first.
 */
export function inLayers(runs: readonly Run[]): Run[] {
  const layered = [...sorts(runs).values()].flatMap((own) =>
    [...own]
      .sort((a, b) => mirrored(a.n - 1) - mirrored(b.n - 1))
      .map((run, at) => ({ run, layer: Math.floor((at * LAYERS) / Math.max(LAYERS, own.length)) })),
  );
  return layered.sort((a, b) => a.layer - b.layer).map(({ run }) => run);
}

/** A number below 1 whose binary digits behind the point are those of `at`, mirrored: numbers in a row become far apart. */
function mirrored(at: number): number {
  let [rest, digit, sum] = [at, 0.5, 0];
  for (; rest > 0; rest = Math.floor(rest / 2), digit /= 2) if (rest % 2 === 1) sum += digit;
  return sum;
}

/** Runs of one place and one phase that can share starts, at most so many; those whose first run comes early come early. */
export function groupsOf(runs: readonly Run[], most: number): Run[][] {
  const places = new Map(runs.map((run, at) => [run, at]));
  const groups = [...by(runs, ({ place, phase }) => `${place}.${phase}`).values()].flatMap((own) =>
    Array.from({ length: Math.ceil(own.length / most) }, (_, at) => own.slice(at * most, (at + 1) * most)),
  );
  const placeOf = (group: readonly Run[]): number => places.get(group[0] as Run) as number;
  return groups.sort((a, b) => placeOf(a) - placeOf(b));
}

/** Which prepared folder a place and a phase need: to prepare one costs as much as many runs. */
export function folderOf({ place, phase }: Pick<Run, 'place' | 'phase'>): string {
  return `${place === 'one' ? 1 : 2}-${phase}`;
}

/**
 * Which of the waiting tasks one of several workers takes: the first that needs the folder of the one that it has had, or else one that no other
 * worker has. Where there are fewer workers than folders, it is the first one, so that no sort waits for the end. own: null before the first task.
 */
export function nextTask(waiting: readonly string[], own: string | null, others: readonly (string | null)[]): number {
  if (others.length + 1 < new Set([...waiting, own, ...others].filter((folder) => folder !== null)).size) return 0;
  const same = own === null ? -1 : waiting.indexOf(own);
  const free = waiting.findIndex((folder) => !others.includes(folder));
  return same >= 0 ? same : Math.max(0, free);
}

function by(runs: readonly Run[], keyOf: (run: Run) => string): Map<string, Run[]> {
  const found = new Map<string, Run[]>();
  for (const run of runs) {
    const own = found.get(keyOf(run)) ?? [];
    if (own.push(run) === 1) found.set(keyOf(run), own);
  }
  return found;
}

/** When the process gives memory back to the system that it has freed, and pages of files that it has only passed through. Pure. */

/** What happened is measured so often without a change before memory is given back. */
const STILL_MEASURES = 4;
/** A smaller change of what is used is none: threads come and go with a few pages. */
const STILL_BYTES = 1 << 20;
/** What has changed by less since the last time is not worth it. */
const WORTH_BYTES = 4 << 20;

/** Where memory is short it is given back this many measures after the last time, however busy the process is. */
const SHORT_MEASURES = 2;
/** Of the budget: from here on nothing that takes memory for good is accepted either (Memory-M3). */
const SHORT_SHARE = 0.85;

export interface GiveBackState {
  /** As last measured. */
  readonly usedBytes: number;
  /** Since the last time. */
  readonly measures: number;
  /** Measures in a row that were like the one before. */
  readonly still: number;
  /** What was used after the last time; null before the first time. */
  readonly leftBytes: number | null;
}

export const NOTHING_GIVEN_BACK: GiveBackState = { usedBytes: 0, measures: 0, still: 0, leftBytes: null };

/**
 * The next state, and whether now is the time. `rest`: the memory that is used has not changed for some measures, and is another than what was left the last
 * time (a start, a build, an upload or many requests have come and gone meanwhile). `short`: it is near the budget, and requests that come without a pause
 * have left some that the C library keeps: 150 of 600 MB, where 512 are to be enough.
 * usedBytes: measured at even intervals.
 */
export function nextGiveBack(
  state: GiveBackState,
  usedBytes: number,
  budgetBytes: number,
): { readonly state: GiveBackState; readonly due: 'rest' | 'short' | null } {
  const still = Math.abs(usedBytes - state.usedBytes) < STILL_BYTES ? state.still + 1 : 0;
  const measures = state.measures + 1;
  const isWorth = state.leftBytes === null || Math.abs(usedBytes - state.leftBytes) >= WORTH_BYTES;
  const next = { ...state, usedBytes, measures, still };
  if (!isWorth) return { state: next, due: null };
  if (still >= STILL_MEASURES) return { state: next, due: 'rest' };
  return { state: next, due: usedBytes >= SHORT_SHARE * budgetBytes && measures >= SHORT_MEASURES ? 'short' : null };
}

/** Memory was given back, and so much is used now. */
export function gaveBack(state: GiveBackState, usedBytes: number): GiveBackState {
  return { ...state, usedBytes, measures: 0, still: 0, leftBytes: usedBytes };
}

/** Less is no more than what requests come and go with. */
const BUILD_BYTES_MIN = 32 << 20;
/** Builds of a stream of points begin every few seconds, and what is given back between two of them is soon taken again. */
const BETWEEN_BUILDS_MS = 10_000;

/**
 * Whether memory is given back for a build that begins: what an upload has left and what the build takes would be the process's peak together.
 * heldBytes: what builds and openings under way may need. sinceMs: since it was given back for one.
 */
export function isDueForBuild(heldBytes: { readonly before: number; readonly now: number }, sinceMs: number): boolean {
  return heldBytes.now - heldBytes.before >= BUILD_BYTES_MIN && sinceMs >= BETWEEN_BUILDS_MS;
}

/** Gives back what the C library keeps of freed blocks, and pages of the program where it is at rest. */
export type MemoryGiver = (what: 'freed' | 'freed and program') => void;

/** Addresses of a process, from `start` on. */
export interface AddressRange {
  readonly start: bigint;
  readonly bytes: bigint;
}

/** `from-to permissions offset device inode  path`: the lines of /proc/<pid>/maps, and what each mapping of smaps begins with. */
const MAPPING = /^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+\s*(.*)$/;

/**
 * Code and constants of a program, as the system loaded them at its start: they stay where they are for as long as the process lives, and
 * a page of them that goes comes back from the file with the next access. Mappings with pages that differ from the file are left out, and so
 * are copies of code that V8 maps beside that of a thread: those go with the thread.
 * smaps: the text of /proc/<pid>/smaps; program: path of the program.
 */
export function programRanges(smaps: string, program: string): AddressRange[] {
  const ranges: AddressRange[] = [];
  let range: AddressRange | null = null;
  /** Where the mapping ends that the next one of the program follows; null before the first. */
  let end: bigint | null = null;
  for (const line of smaps.split('\n')) {
    const [, from, to, permissions = '', path] = MAPPING.exec(line) ?? [];
    if (from !== undefined) {
      range = null;
      const start = BigInt(`0x${from}`);
      if (path !== program || (end !== null && start !== end)) continue;
      end = BigInt(`0x${to}`);
      if (permissions === 'r-xp' || permissions === 'r--p') range = { start, bytes: end - start };
    } else if (range !== null && line.startsWith('Anonymous:')) {
      if (/\s0 kB$/.test(line)) ranges.push(range);
      range = null;
    }
  }
  return ranges;
}

/**
 * Where the process has mapped a file for reading and shares its pages with the system's cache: what is let go of comes back from there.
 * maps: the text of /proc/<pid>/maps; file: its path, without links.
 */
export function mappedRanges(maps: string, file: string): AddressRange[] {
  const ranges: AddressRange[] = [];
  for (const line of maps.split('\n')) {
    if (!line.endsWith(file)) continue;
    const [, from, to, permissions, path] = MAPPING.exec(line) ?? [];
    if (path !== file || permissions !== 'r--s') continue;
    const start = BigInt(`0x${from}`);
    ranges.push({ start, bytes: BigInt(`0x${to}`) - start });
  }
  return ranges;
}

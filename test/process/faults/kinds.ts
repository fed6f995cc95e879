/** Which calls of the kernel fail, how, and the options of strace that make them fail. Decisions only. */

export interface Kind {
  readonly name: string;
  /** What a reader of the table is told. */
  readonly what: string;
  readonly calls: readonly string[];
  /** Of a single failure. */
  readonly once: string;
  /** Of failures in a row. */
  readonly whiles: string;
  /** Only calls on files of the storage folder: the same calls also write to sockets, or map memory of no file. */
  readonly filesOnly: boolean;
  /**
   * V8 and the C++ library end the process when they get no memory or no thread of their own; no program on Node.js can take that. Then the end
   * by these signals is counted, and is no finding.
   */
  readonly runtimeMayEnd: boolean;
}

export const KINDS: readonly Kind[] = [
  { name: 'open', what: 'open', calls: ['openat'], once: 'EMFILE', whiles: 'ENFILE', filesOnly: false, runtimeMayEnd: false },
  {
    name: 'write',
    what: 'write to files',
    calls: ['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2'],
    once: 'EIO',
    whiles: 'ENOSPC',
    filesOnly: true,
    runtimeMayEnd: false,
  },
  { name: 'sync', what: 'sync', calls: ['fsync', 'fdatasync'], once: 'EIO', whiles: 'EIO', filesOnly: false, runtimeMayEnd: false },
  {
    name: 'rename',
    what: 'rename and other changes of folders',
    calls: ['rename', 'renameat2', 'mkdir', 'unlink', 'rmdir', 'link'],
    once: 'EIO',
    whiles: 'ENOSPC',
    filesOnly: false,
    runtimeMayEnd: false,
  },
  {
    name: 'size',
    what: 'size of files',
    calls: ['ftruncate', 'fallocate'],
    once: 'EIO',
    whiles: 'ENOSPC',
    filesOnly: false,
    runtimeMayEnd: false,
  },
  { name: 'map', what: 'maps of files', calls: ['mmap'], once: 'ENOMEM', whiles: 'ENOMEM', filesOnly: true, runtimeMayEnd: false },
  {
    name: 'memory',
    what: 'allocation',
    calls: ['mmap', 'mremap', 'brk'],
    once: 'ENOMEM',
    whiles: 'ENOMEM',
    filesOnly: false,
    runtimeMayEnd: true,
  },
  {
    name: 'thread',
    what: 'start of threads and processes',
    calls: ['clone', 'clone3', 'vfork'],
    once: 'EAGAIN',
    whiles: 'EAGAIN',
    filesOnly: false,
    runtimeMayEnd: true,
  },
];

export const MODES = ['once', 'while'] as const;
export type Mode = (typeof MODES)[number];

/** How many calls in a row fail `while`, in each thread; the end of the workload ends it too. */
const FAILURES_IN_A_ROW = 20;

/** Options of strace by which the n-th (from 1) of each call of a kind fails, in each thread. paths: the files that matter for kinds with `filesOnly`. */
export function injecting(kind: Kind, mode: Mode, n: number, paths: readonly string[], output: string): string[] {
  const calls = kind.calls.join();
  const error = mode === 'once' ? kind.once : kind.whiles;
  const when = mode === 'once' ? `${n}` : `${n}..${n + FAILURES_IN_A_ROW - 1}`;
  const only = kind.filesOnly ? paths.flatMap((path) => ['-P', path]) : [];
  return [...QUIET, output, ...only, `--trace=${calls}`, `--inject=${calls}:error=${error}:when=${when}`];
}

/** Options of strace that write down all calls of all kinds. */
export function counting(output: string): string[] {
  return [...QUIET, output, `--trace=${[...new Set(KINDS.flatMap(({ calls }) => calls))].join()}`];
}

/** With its threads and children, names of files instead of descriptors, the output in a file. */
const QUIET = ['-f', '-qq', '-y', '-s', '0', '--signal=none', '-o'];

export interface Counts {
  /** By kind: how often the thread made one of its calls that made it most often. strace counts each call of each thread by itself. */
  readonly most: ReadonlyMap<string, number>;
  /** By kind: calls of all threads. */
  readonly all: ReadonlyMap<string, number>;
  /** All files below the folder that a call named. */
  readonly paths: readonly string[];
}

/** What a run without faults did. trace: lines of strace; folder: its files count for kinds with `filesOnly`. */
export function countCalls(trace: string, folder: string): Counts {
  const counters = new Map<string, number>();
  const most = new Map<string, number>();
  const all = new Map<string, number>();
  const paths = new Set<string>();
  for (const line of trace.split('\n')) {
    const [, thread = '', call = ''] = /^(\d+) +(\w+)\(/.exec(line) ?? [];
    if (call === '') continue;
    for (const [, path = ''] of line.matchAll(/[<"]([^<>"]+)[>"]/g))
      if (path.startsWith(folder)) paths.add(path.replace(/ \(deleted\)$/, ''));
    const touches = line.includes(`<${folder}`);
    for (const kind of KINDS) {
      if (!kind.calls.includes(call) || (kind.filesOnly && !touches)) continue;
      const counter = `${kind.name} ${thread} ${call}`;
      const count = (counters.get(counter) ?? 0) + 1;
      counters.set(counter, count);
      most.set(kind.name, Math.max(most.get(kind.name) ?? 0, count));
      all.set(kind.name, (all.get(kind.name) ?? 0) + 1);
    }
  }
  return { most, all, paths: [...paths] };
}

/** Calls that strace made fail, as it wrote them down. */
export function injected(trace: string): string[] {
  return trace.split('\n').filter((line) => line.endsWith('(INJECTED)'));
}

/** Which calls of the kernel fail, and how. Decisions only. */

/** Calls that can be made to fail, in the order of failing-calls.c. */
export const CALLS = [
  'openat',
  'write',
  'writev',
  'pwrite64',
  'pwritev',
  'fsync',
  'fdatasync',
  'rename',
  'mkdir',
  'unlink',
  'rmdir',
  'link',
  'ftruncate',
  'fallocate',
  'mmap',
  'mremap',
  'clone',
  // Below /proc and /sys.
  'openat of figures',
] as const;
export type Call = (typeof CALLS)[number];

type ErrorName = 'EMFILE' | 'ENFILE' | 'EIO' | 'ENOSPC' | 'ENOMEM' | 'EAGAIN';

export interface Kind {
  readonly name: string;
  /** What a reader of the table is told. */
  readonly what: string;
  readonly calls: readonly Call[];
  /** Of a single failure. */
  readonly once: ErrorName;
  /** Of failures in a row. */
  readonly whiles: ErrorName;
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
    name: 'figures',
    what: 'open of figures of the system',
    calls: ['openat of figures'],
    once: 'EMFILE',
    whiles: 'ENFILE',
    filesOnly: false,
    runtimeMayEnd: false,
  },
  {
    name: 'write',
    what: 'write to files',
    calls: ['write', 'writev', 'pwrite64', 'pwritev'],
    once: 'EIO',
    whiles: 'ENOSPC',
    filesOnly: true,
    runtimeMayEnd: false,
  },
  { name: 'sync', what: 'sync', calls: ['fsync', 'fdatasync'], once: 'EIO', whiles: 'EIO', filesOnly: false, runtimeMayEnd: false },
  {
    name: 'rename',
    what: 'rename and other changes of folders',
    calls: ['rename', 'mkdir', 'unlink', 'rmdir', 'link'],
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
    calls: ['mmap', 'mremap'],
    once: 'ENOMEM',
    whiles: 'ENOMEM',
    filesOnly: false,
    runtimeMayEnd: true,
  },
  {
    name: 'thread',
    what: 'start of threads and processes',
    calls: ['clone'],
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

/** What fails: calls of each thread, from the `first` to the `last` of each sort, counted from 1. */
export interface FaultPlan {
  readonly calls: readonly Call[];
  readonly first: number;
  readonly last: number;
  /** `SIGKILL`: the process is killed in place of the call. */
  readonly error: ErrorName | 'SIGKILL';
  readonly filesOnly: boolean;
}

/** The n-th (from 1) of each call of a kind fails, in each thread. */
export function faultPlan({ calls, filesOnly, once, whiles }: Kind, mode: Mode, n: number): FaultPlan {
  const [error, last] = mode === 'once' ? [once, n] : [whiles, n + FAILURES_IN_A_ROW - 1];
  return { calls, first: n, last, error, filesOnly };
}

export interface Counts {
  /** By kind: how often the thread made one of its calls that made it most often. Each call of each thread is counted by itself. */
  readonly most: ReadonlyMap<string, number>;
  /** By kind: calls of all threads. */
  readonly all: ReadonlyMap<string, number>;
}

/**
 * The calls of the C library by which a process gives memory back, puts files in its place, has files read ahead, and says how long turns of a thread are. Node.js reaches them from 26 on by `node:ffi`, which is experimental:
 * where the module, the library (musl has no `malloc_trim`) or its way of naming types is another, nothing is given back, and nothing else differs.
 * The same in a process that would be warned of an experimental feature, as a program is that has its node within itself (ops/README.md): `launch.sh` turns the warning off, and so may a program.
 */

import { realpathSync } from 'node:fs';
import { type AddressRange, type MemoryGiver, mappedRanges, programRanges } from './give-back.js';
import { readSystemFile } from './system-file.js';

interface Library {
  readonly functions: {
    /** Gives the pages of freed blocks back, of all arenas; the argument stays at the end of the heap. 1: some were. */
    readonly malloc_trim: (keepBytes: bigint) => number;
    readonly madvise: (start: bigint, bytes: bigint, advice: number) => number;
    readonly mmap: (start: bigint, bytes: bigint, protection: number, flags: number, descriptor: number, position: bigint) => bigint;
    readonly munmap: (start: bigint, bytes: bigint) => number;
    readonly sched_yield: () => number;
    readonly posix_fadvise: (descriptor: number, position: bigint, bytes: bigint, advice: number) => number;
    /** A call of the system by its number, for those that older libraries have no function for. -1: it failed. */
    readonly syscall: (call: bigint, thread: bigint, address: bigint, bytes: bigint, flags: bigint) => bigint;
  };
  /** Where its bytes begin. */
  readonly addressOf: (buffer: ArrayBufferLike) => bigint;
}

interface ForeignFunctions {
  dlopen(
    path: null,
    definitions: Readonly<Record<string, { readonly arguments: readonly string[]; readonly return: string }>>,
  ): Pick<Library, 'functions'>;
  getRawPointer(buffer: ArrayBufferLike): bigint;
}

/** Pages are taken from the file again with the next access. Source: madvise(2). */
const MADV_DONTNEED = 4;
/** Large pages are wanted, where the system gives them to those that ask (`/sys/kernel/mm/transparent_hugepage/enabled`). Source: madvise(2). */
const MADV_HUGEPAGE = 14;
/** The bytes are wanted soon. Source: posix_fadvise(2). */
const POSIX_FADV_WILLNEED = 3;
/** Source: mmap(2), the same on each processor that Node.js runs on. */
const PROT_READ = 1;
const PROT_WRITE = 2;
const MAP_PRIVATE = 2;
const MAP_FIXED = 16;
const MAP_ANONYMOUS = 32;
const MAP_NORESERVE = 0x4000;
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;

/** Null where the process cannot. */
export function memoryGiver(): MemoryGiver | null {
  const library = openLibrary();
  if (library === null) return null;
  const { madvise, malloc_trim } = library.functions;
  // They are the same for as long as the process lives.
  const ranges: readonly AddressRange[] = programRanges(readSystemFile('/proc/self/smaps'), process.execPath);
  return (what) => {
    malloc_trim(0n);
    if (what === 'freed and program') for (const { start, bytes } of ranges) madvise(start, bytes, MADV_DONTNEED);
  };
}

/**
 * Lets go of the pages that this process has mapped of a database's file, which stay in the system's cache: most of them are of records that are not there any
 * more. The file is mapped and unmapped by nobody else meanwhile: in its place there could be memory by now. Null where the process cannot.
 */
export function mappedPagesGiver(): ((file: string) => void) | null {
  const library = openLibrary();
  if (library === null) return null;
  const { madvise } = library.functions;
  return (file) => {
    const mapped = mappedRanges(readSystemFile('/proc/self/maps'), realpathSync(file));
    for (const { start, bytes } of mapped) madvise(start, bytes, MADV_DONTNEED);
  };
}

/** A part of a buffer, and where in a file the same bytes are. All are multiples of the system's pages. */
export interface FilePart {
  readonly buffer: ArrayBufferLike;
  readonly offset: number;
  readonly bytes: number;
}

/** Pages of files in the place of memory. Whoever calls holds the buffer, which is what keeps the place from being used for something else. */
export interface FilePages {
  /**
   * Puts a file's bytes from `position` on in the place of a buffer's, for reading only: they are in memory as far as they are read, and the system takes them from
   * the file, which may lose its name and must not become shorter. Other threads may read meanwhile, where both have the same bytes. Returns whether it did.
   */
  put(part: FilePart, descriptor: number, position: number): boolean;
  /** Lets go of the pages that were read, which stay in the system's cache. Where no file is, what was there is lost, and zero. */
  letGo(part: FilePart): void;
}

/** Null where the process cannot. */
export function filePages(): FilePages | null {
  const library = openLibrary();
  if (library === null) return null;
  const { addressOf, functions } = library;
  const { madvise, mmap, munmap } = functions;
  const startOf = ({ buffer, offset }: FilePart): bigint => addressOf(buffer) + BigInt(offset);
  return {
    put(part, descriptor, position) {
      const size = BigInt(part.bytes);
      // What fails at a fixed place may leave nothing there: whatever can be wrong with the file shows at a free one.
      const trial = mmap(0n, size, PROT_READ, MAP_PRIVATE, descriptor, BigInt(position));
      if (trial === MAP_FAILED) return false;
      munmap(trial, size);
      const placed = mmap(startOf(part), size, PROT_READ, MAP_PRIVATE | MAP_FIXED, descriptor, BigInt(position));
      if (placed === MAP_FAILED) throw new Error('the system has lost the memory in whose place a file was to be');
      return true;
    },
    letGo(part) {
      madvise(startOf(part), BigInt(part.bytes), MADV_DONTNEED);
    },
  };
}

/**
 * Leaves nothing in a part of a buffer that nobody will read any more: neither memory nor pages of files, so that removed ones leave the disk. Null where the
 * process cannot.
 */
export function memoryEmptier(): ((part: FilePart) => void) | null {
  const library = openLibrary();
  if (library === null) return null;
  const { addressOf, functions } = library;
  const flags = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE;
  return ({ buffer, bytes, offset }) => {
    functions.mmap(addressOf(buffer) + BigInt(offset), BigInt(bytes), PROT_READ | PROT_WRITE, flags, -1, 0n);
  };
}

/** Has the system give large pages for a part of a buffer that will be used as a whole. Null where the process cannot. */
export function largePages(): ((part: FilePart) => void) | null {
  const library = openLibrary();
  if (library === null) return null;
  const { addressOf, functions } = library;
  return ({ buffer, bytes, offset }) => void functions.madvise(addressOf(buffer) + BigInt(offset), BigInt(bytes), MADV_HUGEPAGE);
}

/** Lets other threads that wait for this thread's CPU go first. Null where the process cannot. */
export function giveWayCall(): (() => void) | null {
  const library = openLibrary();
  if (library === null) return null;
  const { sched_yield } = library.functions;
  return () => void sched_yield();
}

/** Numbers of `sched_setattr` and `sched_getattr`, by processor. Source: tables of system calls of Linux. */
const SCHEDULING_CALLS: Readonly<Record<string, { readonly set: bigint; readonly get: bigint }>> = {
  x64: { set: 314n, get: 315n },
  arm64: { set: 274n, get: 275n },
};
/**
 * `sched_attr` in its first form: size and policy u32, flags u64, niceness i32, priority u32, then three u64, of which the first is the length of a turn.
 * Source: sched_setattr(2).
 */
const ATTRIBUTES_BYTES = 48;
const POLICY_AT = 4;
const TURN_AT = 24;
const SCHED_OTHER = 0;

/**
 * Has this thread's turns on a CPU be so long, and those of threads that it starts from now on. One with shorter turns than the thread that has the CPU
 * gets it as soon as it wakes up, and its share stays what it is. Linux takes it from 6.12 on. Returns the length that the system has now, in nanoseconds; null
 * where the process cannot ask, or the thread is scheduled in a way of its own.
 */
export function setTurns(nanoseconds: bigint): bigint | null {
  const library = openLibrary();
  const calls = SCHEDULING_CALLS[process.arch];
  if (library === null || calls === undefined) return null;
  const { addressOf, functions } = library;
  const attributes = new DataView(new ArrayBuffer(ATTRIBUTES_BYTES));
  const address = addressOf(attributes.buffer);
  const read = (): boolean => functions.syscall(calls.get, 0n, address, BigInt(ATTRIBUTES_BYTES), 0n) === 0n;
  if (!read() || attributes.getUint32(POLICY_AT, true) !== SCHED_OTHER) return null;
  attributes.setBigUint64(TURN_AT, nanoseconds, true);
  functions.syscall(calls.set, 0n, address, 0n, 0n);
  return read() ? attributes.getBigUint64(TURN_AT, true) : null;
}

/** Has the system read a part of an open file without waiting for it. */
export type AskAhead = (descriptor: number, position: number, bytes: number) => void;

/** Null where the process cannot. */
export function askAhead(): AskAhead | null {
  const library = openLibrary();
  if (library === null) return null;
  const { posix_fadvise } = library.functions;
  return (descriptor, position, bytes) => {
    posix_fadvise(descriptor, BigInt(position), BigInt(bytes), POSIX_FADV_WILLNEED);
  };
}

/** Of this thread; undefined until it is asked for. */
let known: Library | null | undefined;

function openLibrary(): Library | null {
  if (known === undefined) known = isWarned(process.execArgv, process.env) ? null : newLibrary();
  return known;
}

const WITHOUT_WARNING = new Set(['--disable-warning=ExperimentalWarning', '--no-warnings']);

/** Whether a process with these options of Node.js and this environment is warned of experimental features. */
export function isWarned(execArgv: readonly string[], environment: NodeJS.ProcessEnv): boolean {
  const { NODE_NO_WARNINGS, NODE_OPTIONS = '', TROUPE_STARTED } = environment;
  if (TROUPE_STARTED !== undefined || NODE_NO_WARNINGS === '1') return false;
  return ![...execArgv, ...NODE_OPTIONS.split(' ')].some((option) => WITHOUT_WARNING.has(option));
}

function newLibrary(): Library | null {
  if (process.platform !== 'linux') return null;
  const find = process.getBuiltinModule as ((name: string) => unknown) | undefined;
  try {
    const foreign = find?.('node:ffi') as ForeignFunctions | undefined;
    if (foreign === undefined) return null;
    const { functions } = foreign.dlopen(null, {
      malloc_trim: { arguments: ['u64'], return: 'i32' },
      madvise: { arguments: ['u64', 'u64', 'i32'], return: 'i32' },
      mmap: { arguments: ['u64', 'u64', 'i32', 'i32', 'i32', 'i64'], return: 'u64' },
      munmap: { arguments: ['u64', 'u64'], return: 'i32' },
      sched_yield: { arguments: [], return: 'i32' },
      posix_fadvise: { arguments: ['i32', 'i64', 'i64', 'i32'], return: 'i32' },
      syscall: { arguments: ['i64', 'i64', 'u64', 'i64', 'i64'], return: 'i64' },
    });
    // Throws where types are named in another way.
    functions.malloc_trim(0n);
    return { functions, addressOf: (buffer) => foreign.getRawPointer(buffer) };
  } catch {
    return null;
  }
}

/**
 * The two calls of the C library by which a process gives memory back. Node.js reaches them from 26 on by `node:ffi`, which is experimental:
 * where the module, the library (musl has no `malloc_trim`) or its way of naming types is another, nothing is given back, and nothing else differs.
 */

import { realpathSync } from 'node:fs';
import { type AddressRange, mappedRanges, programRanges } from './give-back.js';
import { readSystemFile } from './system-file.js';

interface Library {
  readonly functions: {
    /** Gives the pages of freed blocks back, of all arenas; the argument stays at the end of the heap. 1: some were. */
    readonly malloc_trim: (keepBytes: bigint) => number;
    readonly madvise: (start: bigint, bytes: bigint, advice: number) => number;
  };
}

interface ForeignFunctions {
  dlopen(path: null, definitions: Readonly<Record<string, { readonly arguments: readonly string[]; readonly return: string }>>): Library;
}

/** Pages are taken from the file again with the next access. Source: madvise(2). */
const MADV_DONTNEED = 4;

/** Whether this process is one that `launch.sh` started: a program that has its node within itself is not warned of an experimental feature (ops/README.md). */
export function givesMemoryBack(): boolean {
  return process.env.TROUPE_STARTED !== undefined;
}

/** Gives back what the C library keeps of freed blocks, and pages of the program. Null where the process cannot. */
export function memoryGiver(): (() => void) | null {
  const library = openLibrary();
  if (library === null) return null;
  const { madvise, malloc_trim } = library.functions;
  // They are the same for as long as the process lives.
  const ranges: readonly AddressRange[] = programRanges(readSystemFile('/proc/self/smaps'), process.execPath);
  return () => {
    malloc_trim(0n);
    for (const { start, bytes } of ranges) madvise(start, bytes, MADV_DONTNEED);
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

function openLibrary(): Library | null {
  if (process.platform !== 'linux') return null;
  const find = process.getBuiltinModule as ((name: string) => unknown) | undefined;
  try {
    const foreign = find?.('node:ffi') as ForeignFunctions | undefined;
    if (foreign === undefined) return null;
    const library = foreign.dlopen(null, {
      malloc_trim: { arguments: ['u64'], return: 'i32' },
      madvise: { arguments: ['u64', 'u64', 'i32'], return: 'i32' },
    });
    // Throws where types are named in another way.
    library.functions.malloc_trim(0n);
    return library;
  } catch {
    return null;
  }
}

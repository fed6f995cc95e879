/**
 * The two calls of the C library by which a process gives memory back. Node.js reaches them from 26 on by `node:ffi`, which is experimental:
 * where the module, the library (musl has no `malloc_trim`) or its way of naming types is another, nothing is given back, and nothing else differs.
 */

import { type AddressRange, programRanges } from '../storage/memory/give-back.js';
import { readSystemFile } from '../storage/memory/system-file.js';

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

/** The files that worker threads, and the process that checks LMDB files, start with, found here alone: compiled ones, or those of the bundle where this is part of it. */

/** Set by `ops/build-bundle.mjs`, which names its files by the keys of `THREAD_FILES`. */
declare const TROUPE_BUNDLE: true | undefined;

/** The file of each thread's program, from here. */
export const THREAD_FILES = {
  reader: '../reader/entry.js',
  writer: '../writer/writer.js',
  builder: '../builder/builder.js',
  'graph-helper': '../builder/graph-helper.js',
  gather: '../gather/thread.js',
  keeper: '../consensus-log/keeper.js',
  archive: '../archive/thread.js',
  checker: '../verify/lmdb-child.js',
};

/** Whether this is part of the bundle. */
export const IN_BUNDLE = typeof TROUPE_BUNDLE !== 'undefined';

export type ThreadName = keyof typeof THREAD_FILES;

/** Where the program of a thread lies. */
export function threadEntry(name: ThreadName): URL {
  return bundledEntry(name, new URL(THREAD_FILES[name], import.meta.url));
}

/** The bundle's file of this name where this is part of the bundle, the compiled file otherwise: for threads of other rooms. */
export function bundledEntry(name: string, compiled: URL): URL {
  return IN_BUNDLE ? new URL(`../../bundle/${name}.cjs`, import.meta.url) : compiled;
}

/** What a process that checks LMDB files and the one that starts it say to each other (`verify-lmdb.ts`, `lmdb-child.ts`). */

import path from 'node:path';

/** The child's argument says what the folders hold. */
export const CHILD_ARGUMENTS = { replica: 'verify-lmdb', consensus: 'verify-consensus' } as const;

/** lacking: the file could not be looked at, for want of something that comes back. */
export type FileVerdict = { readonly damaged: string | null } | { readonly lacking: string };

/** The child's first message: it has all that it needs. */
export const CAN_BEGIN = 'canBegin';
/**
 * The child's message for each folder: LMDB has it open, so that what ends the child from now on is the file. LMDB's `open` ends the process for
 * a lack (Room-R1); of the file it reads the meta pages, which have been read before.
 */
export const HAS_OPENED = 'hasOpened';

/** The environment of a replica's folder, or of a consensus log's, which is one. */
export function lmdbFolder(folder: string): string {
  return path.basename(folder) === 'lmdb' ? folder : path.join(folder, 'lmdb');
}

export function dataFile(folder: string): string {
  return path.join(lmdbFolder(folder), 'data.mdb');
}

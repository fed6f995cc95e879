/** What packing and unpacking need of the disk. */

import fs from 'node:fs';
import { TroupeError } from '../../protocols/errors.js';
import { codeOf } from '../disk/machine.js';

const RETRY_MS = 10_000;

/** Errors: `outOfDisk` unless the disk of a folder has so many bytes and a rest. Disks that do not say how much is free are taken to have them. */
export function requireRoom(folder: string, bytes: number, freeBytesMin: number, doing: string): void {
  const free = freeBytesOf(folder);
  if (free - bytes >= freeBytesMin) return;
  const needs = bytes === 0 ? '' : `it takes ${bytes} bytes, `;
  throw outOfDisk(
    `${doing}: ${needs}${free} are free on the disk of ${folder}, and ${freeBytesMin} stay free (\`storage.disk_free_min_mb\`); give the disk more room`,
  );
}

/** What a system call has thrown, as an error of the catalogue; other errors as they are. */
export function diskError(error: unknown, doing: string): unknown {
  if (error instanceof TroupeError || (error as NodeJS.ErrnoException).syscall === undefined) return error;
  const code = codeOf(error);
  const detail = `${doing} (${code})`;
  if (code === 'ENOSPC' || code === 'EDQUOT') return outOfDisk(`${detail}; make room on the disk`, error);
  return new TroupeError('storage', detail, { cause: error, outcome: 'none' });
}

export function writeFully(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += fs.writeSync(fd, bytes, done, bytes.length - done);
}

function outOfDisk(detail: string, cause?: unknown): TroupeError {
  return new TroupeError('outOfDisk', detail, { retryAfterMs: RETRY_MS, outcome: 'none', cause });
}

function freeBytesOf(folder: string): number {
  try {
    const { bavail, blocks, bsize } = fs.statfsSync(folder);
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

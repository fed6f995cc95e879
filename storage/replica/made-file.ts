/** The file that says a replica was made to the end. */

import { closeSync, existsSync, fsyncSync, openSync, writeSync } from 'node:fs';
import path from 'node:path';
import { syncFolder } from '../segment/file.js';

/** Says that the replica's LMDB file has been made, and of which format the replica is. */
const MADE_FILE = 'format.json';

export function isMarkedMade(folder: string): boolean {
  return existsSync(path.join(folder, MADE_FILE));
}

/** Without this, an LMDB file that was lost or cut to nothing would be taken for one that was never made. */
export function markMade(folder: string): void {
  if (isMarkedMade(folder)) return;
  const fd = openSync(path.join(folder, MADE_FILE), 'w');
  try {
    writeSync(fd, '{"format":1}\n');
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  syncFolder(folder);
}

/** The file that says a replica was made to the end, and of which format it is. */

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { publishByRename } from '../segment/file.js';

/** Says that the replica's LMDB file has been made, and of which format the replica is. */
const MADE_FILE = 'format.json';

/**
 * 2: large values lie in files beside LMDB. 3: the manifest says which vectors an appendable segment has, and these may be
 * of any kind; a replica of format 2 becomes one of format 3 when it is opened.
 */
const FORMAT = 3;
const READABLE: readonly unknown[] = [2, FORMAT];

export function isMarkedMade(folder: string): boolean {
  return existsSync(path.join(folder, MADE_FILE));
}

/** Refuses a replica of another format. Errors: `storage`. */
export function checkFormat(folder: string): void {
  if (!isMarkedMade(folder)) return;
  const file = path.join(folder, MADE_FILE);
  const format = readFormat(file);
  if (!READABLE.includes(format))
    throw new TroupeError('storage', `${file}: unknown format ${String(format)}; this release reads format ${FORMAT}`);
}

function readFormat(file: string): unknown {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { format: unknown }).format;
  } catch (error) {
    throw new TroupeError('storage', `${file} is damaged`, { cause: error });
  }
}

/**
 * Without this, an LMDB file that was lost or cut to nothing would be taken for one that was never made. The file comes
 * into being by a rename, as an empty one would be taken for damaged.
 */
export function markMade(folder: string): void {
  const file = path.join(folder, MADE_FILE);
  if (isMarkedMade(folder) && readFormat(file) === FORMAT) return;
  const fd = openSync(`${file}.tmp`, 'w');
  try {
    writeSync(fd, `${JSON.stringify({ format: FORMAT })}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  publishByRename(`${file}.tmp`, file);
}

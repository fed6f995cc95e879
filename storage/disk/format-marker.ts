/** The file that says a folder with an LMDB file was made to the end, and of which format it is. */

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { publishByRename, syncFolderNow } from './file.js';

const MADE_FILE = 'format.json';

export function isMarkedMade(folder: string): boolean {
  return existsSync(path.join(folder, MADE_FILE));
}

/** The format of a folder; null before it is made. Errors: `storage` for another one than those that this release reads. */
export function checkFormat(folder: string, ...formats: readonly number[]): number | null {
  if (!isMarkedMade(folder)) return null;
  const file = path.join(folder, MADE_FILE);
  const found = readFormat(file);
  const known = formats.find((format) => format === found);
  if (known !== undefined) return known;
  const read = `format${formats.length > 1 ? 's' : ''} ${formats.join(' and ')}`;
  throw new TroupeError('storage', `${file}: unknown format ${String(found)}; this release reads ${read}`);
}

function readFormat(file: string): unknown {
  const text = textOf(file);
  try {
    return (JSON.parse(text) as { format: unknown }).format;
  } catch (error) {
    throw new TroupeError('storage', `${file} is damaged`, { cause: error, reason: 'damaged' });
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new TroupeError('storage', `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

/**
 * Marks a folder as made, or one of an older format as being of this one from now on. Without the mark, an LMDB file that was lost or cut to nothing would be taken for one that was never made. The file comes
 * into being by a rename, as an empty one would be taken for damaged.
 */
export function markMade(folder: string, format: number): void {
  const file = path.join(folder, MADE_FILE);
  if (isMarkedMade(folder) && readFormat(file) === format) return;
  const fd = openSync(`${file}.tmp`, 'w');
  try {
    writeSync(fd, `${JSON.stringify({ format })}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  publishByRename(`${file}.tmp`, file);
  syncFolderNow(path.dirname(folder));
}

/**
 * Small JSON files that exist whole or not at all: `{"format":1,"checksum":"…","<key>":<value>}` and a line feed. The checksum is the
 * 64-bit xxHash of the value's bytes, so any flipped or missing byte shows. Files that must last are replaced by write, sync, rename, sync.
 */

import { open, rename } from 'node:fs/promises';
import { TroupeError } from '../../protocols/errors.js';
import { parseStored, stringifyJson } from '../../protocols/json.js';
import { checksum64 } from './checksum.js';
import { checkOwned } from './owned-folder.js';

const CHECKED_FORMAT = 1;
const TAIL = '}\n';

/** The bytes of such a file. key: letters only. */
export function encodeChecked(key: string, value: unknown): Uint8Array {
  const body = Buffer.from(stringifyJson(value), 'utf8');
  const head = `{"format":${CHECKED_FORMAT},"checksum":"${checksumOf(body)}","${key}":`;
  return Buffer.concat([Buffer.from(head, 'utf8'), body, Buffer.from(TAIL, 'utf8')]);
}

/**
 * The value that `encodeChecked` wrote. kind: the content of such a file, for messages. Errors: `storage`, naming `path`, if a byte is
 * missing or wrong or the format is another one.
 */
export function decodeChecked(bytes: Uint8Array, key: string, path: string, kind: string): unknown {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const head = new RegExp(`^\\{"format":(\\d{1,9}),"checksum":"([0-9a-f]{16})","${key}":`).exec(file.toString('latin1', 0, 80));
  if (head === null) throw new TroupeError('storage', `${path} is damaged: it does not begin as ${kind}`);
  if (Number(head[1]) !== CHECKED_FORMAT)
    throw new TroupeError('storage', `${path} has format ${head[1]}, this version reads ${CHECKED_FORMAT}`);
  if (file.toString('latin1', file.length - TAIL.length) !== TAIL)
    throw new TroupeError('storage', `${path} is damaged: its end is missing`);
  const body = file.subarray(head[0].length, file.length - TAIL.length);
  if (checksumOf(body) !== head[2]) throw new TroupeError('storage', `${path} is damaged: its checksum does not match`);
  // The checksum holds, so these are the bytes that were printed from a value.
  return parseStored(body);
}

/**
 * Replaces a file by a new one that is written and synced beside it: a reader sees the old bytes or the new ones. `syncFolder` makes the
 * change durable. Errors: `unavailable` when another process has taken over the storage folder (Owner-F1).
 */
export async function replaceFile(path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w');
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await renameOwned(temporary, path);
}

/** Renames within the storage folder, while it is this process's. Errors: the system's; `unavailable` (Owner-F1). */
export async function renameOwned(from: string, to: string): Promise<void> {
  checkOwned(to);
  await rename(from, to);
}

/** Makes renames in a folder durable, where the system can sync folders. Errors: `unavailable` when they may be lost all the same (Owner-F1). */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
  checkOwned(path);
}

function checksumOf(body: Uint8Array): string {
  return checksum64(body).toString(16).padStart(16, '0');
}

/**
 * Folder names of collections, safe on every file system: names that differ only in case or in Unicode form stay apart.
 * They serve as actor names, too.
 */

import { crypto } from '../../protocols/late-modules.js';

/** Below the 255 bytes that most file systems allow for a name. */
const FOLDER_NAME_MAX = 200;
const HASH_DIGITS = 32;
/** Cache of recent folder names: a node of a cluster computes all of them each time something is agreed. */
const knownFolders = new Map<string, string>();
const KNOWN_MAX = 20_000;

/**
 * The folder of the collection `name`: lower-case letters, digits, `-` and `_` stand for themselves, every other byte of its
 * UTF-8 form is `+` and two hexadecimal digits. A longer result is cut and ends with `++` and a hash of the name.
 */
export function folderName(name: string): string {
  const known = knownFolders.get(name);
  if (known !== undefined) return known;
  if (knownFolders.size >= KNOWN_MAX) knownFolders.clear();
  const folder = folderOf(name);
  knownFolders.set(name, folder);
  return folder;
}

function folderOf(name: string): string {
  let folder = '';
  for (const byte of Buffer.from(name, 'utf8'))
    folder += isPlain(byte) ? String.fromCharCode(byte) : `+${byte.toString(16).padStart(2, '0')}`;
  if (folder.length <= FOLDER_NAME_MAX) return folder;
  const hash = crypto().createHash('sha256').update(name, 'utf8').digest('hex').slice(0, HASH_DIGITS);
  return `${folder.slice(0, FOLDER_NAME_MAX - HASH_DIGITS - 2)}++${hash}`;
}

/** The collection of a folder, as far as the folder's name tells; a shortened name is returned as it is. */
export function collectionNameOf(folder: string): string {
  if (folder.includes('++')) return folder;
  const bytes: number[] = [];
  for (let at = 0; at < folder.length; at++) {
    if (folder[at] !== '+') bytes.push(folder.charCodeAt(at));
    else {
      bytes.push(Number.parseInt(folder.slice(at + 1, at + 3), 16));
      at += 2;
    }
  }
  return Buffer.from(bytes).toString('utf8');
}

function isPlain(byte: number): boolean {
  const lower = byte >= 0x61 && byte <= 0x7a;
  const digit = byte >= 0x30 && byte <= 0x39;
  return lower || digit || byte === 0x2d || byte === 0x5f;
}

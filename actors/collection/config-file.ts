/**
 * The text of a collection's `config.json`: `{"format":1,"checksum":"…","collection":{"name":…,"config":…}}` and a line feed.
 * The checksum is the 64-bit xxHash of the bytes of the value of `collection`, so any flipped or missing byte shows.
 */

import { TroupeError } from '../../protocols/errors.js';
import { parseJson, stringifyJson } from '../../protocols/json.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { checksum64 } from '../../storage/checksum.js';

export const CONFIG_FORMAT = 1;

export interface StoredCollection {
  readonly name: string;
  readonly config: CollectionConfig;
}

const HEAD = /^\{"format":(\d{1,9}),"checksum":"([0-9a-f]{16})","collection":/;
const TAIL = '}\n';

export function encodeConfigFile(collection: StoredCollection): Uint8Array {
  const body = Buffer.from(stringifyJson({ name: collection.name, config: collection.config }), 'utf8');
  const head = `{"format":${CONFIG_FORMAT},"checksum":"${checksumOf(body)}","collection":`;
  return Buffer.concat([Buffer.from(head, 'utf8'), body, Buffer.from(TAIL, 'utf8')]);
}

/** What `encodeConfigFile` wrote. Errors: `storage`, naming `path`, when a byte is missing or wrong or the format is another one. */
export function decodeConfigFile(bytes: Uint8Array, path: string): StoredCollection {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const head = HEAD.exec(file.toString('latin1', 0, 80));
  if (head === null) throw new TroupeError('storage', `${path} is damaged: it does not begin as a collection's configuration`);
  if (Number(head[1]) !== CONFIG_FORMAT)
    throw new TroupeError('storage', `${path} has format ${head[1]}, this version reads ${CONFIG_FORMAT}`);
  if (file.toString('latin1', file.length - TAIL.length) !== TAIL)
    throw new TroupeError('storage', `${path} is damaged: its end is missing`);
  const body = file.subarray(head[0].length, file.length - TAIL.length);
  if (checksumOf(body) !== head[2]) throw new TroupeError('storage', `${path} is damaged: its checksum does not match`);
  // The checksum holds, so these are the bytes that were printed from a collection.
  return parseJson(body) as unknown as StoredCollection;
}

function checksumOf(body: Uint8Array): string {
  return checksum64(body).toString(16).padStart(16, '0');
}

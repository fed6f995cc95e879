/** The text of a collection's `config.json`: `{"format":1,"checksum":"…","collection":{"name":…,"config":…,"belonging":…}}`. */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import { decodeChecked, encodeChecked } from '../checked-file.js';
import type { Belonging } from '../node/desired.js';

export interface StoredCollection {
  readonly name: string;
  readonly config: CollectionConfig;
  /** Left out: it is of no cluster, and has shard 0. */
  readonly belonging?: Belonging | undefined;
}

export function encodeConfigFile(collection: StoredCollection): Uint8Array {
  const { name, config, belonging } = collection;
  return encodeChecked('collection', { name, config, ...(belonging === undefined ? {} : { belonging }) });
}

/** What `encodeConfigFile` wrote. Errors: `storage`, naming `path`, when a byte is missing or wrong or the format is another one. */
export function decodeConfigFile(bytes: Uint8Array, path: string): StoredCollection {
  return decodeChecked(bytes, 'collection', path, "a collection's configuration") as StoredCollection;
}

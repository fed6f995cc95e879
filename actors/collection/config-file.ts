/** The text of a collection's `config.json`: `{"format":1,"checksum":"…","collection":{"name":…,"config":…}}`. */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import { decodeChecked, encodeChecked } from '../checked-file.js';

export interface StoredCollection {
  readonly name: string;
  readonly config: CollectionConfig;
}

export function encodeConfigFile(collection: StoredCollection): Uint8Array {
  return encodeChecked('collection', { name: collection.name, config: collection.config });
}

/** What `encodeConfigFile` wrote. Errors: `storage`, naming `path`, when a byte is missing or wrong or the format is another one. */
export function decodeConfigFile(bytes: Uint8Array, path: string): StoredCollection {
  return decodeChecked(bytes, 'collection', path, "a collection's configuration") as StoredCollection;
}

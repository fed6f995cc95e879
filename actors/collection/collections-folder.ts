/** Where collections are in the storage folder. */

import { opendirSync } from 'node:fs';
import { join } from 'node:path';

export const COLLECTIONS = 'collections';

/** Whether a collection may be in the store below a folder, which need not be there. Thousands of them are not listed for that. */
export function hasCollections(storagePath: string): boolean {
  try {
    const folder = opendirSync(join(storagePath, COLLECTIONS));
    const first = folder.readSync();
    folder.closeSync();
    return first !== null;
  } catch {
    return false;
  }
}

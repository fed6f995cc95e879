/** Where collections are in the storage folder. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';

export const COLLECTIONS = 'collections';

/** Whether a collection may be in the store below a folder, which need not be there. */
export function hasCollections(storagePath: string): boolean {
  try {
    return readdirSync(join(storagePath, COLLECTIONS)).length > 0;
  } catch {
    return false;
  }
}

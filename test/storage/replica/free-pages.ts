/** Free pages in the database of a replica, which make a smaller file worth its while. */

import { rowKey } from '../../../storage/wal/records.js';
import type { Replica } from './support.js';

const RECORD_BYTES = 8000;
/** Of a small replica: about the fewest that make a copy worth it. */
export const FREED_RECORDS = 600;

/** Writes and removes records of no segment: 2,700 are 21 MB. */
export function addFreePages({ store }: Pick<Replica, 'store'>, records = 2700): void {
  const { environment } = store;
  const keys = Array.from({ length: records }, (_, at) => rowKey(1_000_000, at));
  environment.write(() => {
    for (const key of keys) environment.put('payload', key, Buffer.alloc(RECORD_BYTES));
  });
  environment.write(() => {
    for (const key of keys) environment.remove('payload', key);
  });
}

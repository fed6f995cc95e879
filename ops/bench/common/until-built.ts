/** When a collection has been built. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { RestClient } from '../../rest-client.js';

/** What is below the threshold of indexing is indexed after five quiet seconds, and up to 200 MB of vectors are joined after 13; then there is no further build. */
export const BUILT_QUIET_MS = 14_000;

/** Result: the number of indexed vectors, once the collection has some and has been green for `quietMs`. look: told what each look finds. */
export async function untilBuilt(
  client: RestClient,
  collection: string,
  { pollMs, quietMs, look = () => {} }: { readonly pollMs: number; readonly quietMs: number; readonly look?: (told: string) => void },
): Promise<number> {
  for (let greenMs = 0; ; ) {
    const { indexed_vectors_count: indexed, status } = await client.result<{ status: string; indexed_vectors_count: number }>(
      'GET',
      `/collections/${collection}`,
    );
    greenMs = status === 'green' && indexed > 0 ? greenMs + pollMs : 0;
    if (greenMs >= quietMs) return indexed;
    look(`${status}, ${indexed} indexed`);
    await sleep(pollMs);
  }
}

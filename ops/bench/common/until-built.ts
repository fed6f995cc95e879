/** When a collection has been built. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { RestClient } from '../../rest-client.js';

/** What is below the threshold of indexing is indexed after five quiet seconds, and up to 200 MB of vectors are joined after 13; then there is no further build. */
export const BUILT_QUIET_MS = 14_000;

interface BuiltOptions {
  readonly pollMs: number;
  readonly quietMs: number;
  /** Told what each look finds. */
  readonly look?: (told: string) => void;
}

/** Result: the number of indexed vectors, once the collection has some and has been green for `quietMs`. */
export function untilBuilt(client: RestClient, collection: string, options: BuiltOptions): Promise<number> {
  return untilGreen(() => client.result('GET', `/collections/${collection}`), options);
}

/** The same of a collection that is asked about in another way. */
export async function untilGreen(
  ask: () => Promise<{ readonly status: string; readonly indexed_vectors_count?: number | null | undefined }>,
  { pollMs, quietMs, look = () => {} }: BuiltOptions,
): Promise<number> {
  for (let greenMs = 0; ; ) {
    const { indexed_vectors_count: counted, status } = await ask();
    const indexed = counted ?? 0;
    greenMs = status === 'green' && indexed > 0 ? greenMs + pollMs : 0;
    if (greenMs >= quietMs) return indexed;
    look(`${status}, ${indexed} indexed`);
    await sleep(pollMs);
  }
}

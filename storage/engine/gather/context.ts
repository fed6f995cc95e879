/** What the parts of one read over many nodes share. */

import type { Scoring } from '../../../protocols/model/query.js';
import type { TermSums } from '../portion/messages.js';
import type { ResolvedInputs } from './inputs.js';
import type { Portions } from './portions.js';
import type { Source } from './source.js';

export interface GatherContext {
  readonly source: Source;
  readonly portions: Portions;
  /** Another collection or alias. Errors: `notFound`. */
  readonly lookup: (collection: string) => Promise<Source>;
  /** 0 <= n < 1. */
  readonly random: () => number;
  /** What the inputs of a query were found to be: groups ask it several times. */
  readonly inputs: WeakMap<Scoring, Promise<ResolvedInputs>>;
  readonly terms: WeakMap<Scoring, Promise<TermSums | null>>;
}

/** All of them; when some fail, the error of the first of those, as if they had run one after the other. */
export async function allInOrder<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  return settled.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}

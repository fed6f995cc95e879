/** What the parts of one read over many nodes share. */

import type { Scoring } from '../../../protocols/model/query.js';
import type { TermSums } from '../portion/messages.js';
import type { GatherAsk, GatherPlace } from './access.js';
import type { ResolvedInputs } from './inputs.js';
import { Portions } from './portions.js';
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

/** What a read does besides deciding. */
export interface GatherActs {
  /** See `GatherAccess`. */
  readonly place: GatherPlace;
  readonly locate: (collection: string) => Promise<GatherPlace>;
  readonly scatter: (ask: GatherAsk) => Promise<readonly Uint8Array[]>;
  /** Whether the time of the request is over. */
  readonly expired: () => boolean;
  /** Runs something once all that can go on now has gone on. */
  readonly later: (run: () => void) => void;
  readonly random: () => number;
}

export function gatherContext({ place, locate, scatter, expired, later, random }: GatherActs): GatherContext {
  const lookups = new Map<string, Promise<Source>>();
  const lookup = async (collection: string): Promise<Source> => ({ collection, place: await locate(collection), shards: null });
  return {
    source: { collection: null, place, shards: null },
    portions: new Portions({ scatter, expired, later }),
    lookup: (collection) => {
      const known = lookups.get(collection) ?? lookup(collection);
      lookups.set(collection, known);
      return known;
    },
    random,
    inputs: new WeakMap(),
    terms: new WeakMap(),
  };
}

/** All of them; when some fail, the error of the first of those, as if they had run one after the other. */
export async function allInOrder<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  return settled.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}

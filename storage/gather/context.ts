/** What the parts of one read over many nodes share. */

import type { ShardKeySelector } from '../../protocols/model/cluster.js';
import type { Scoring } from '../../protocols/model/query.js';
import type { GatherExplainer } from '../explain/gather-explainer.js';
import type { TermSums } from '../threads/portion.js';
import type { ResolvedInputs } from '../walk/walk.js';
import type { GatherAsk, GatherPlace } from './access.js';
import { Portions } from './portions.js';
import { chosenShards, type Source } from './source.js';

export interface GatherContext {
  readonly source: Source;
  readonly portions: Portions;
  /** Another collection or alias, all its shards or those chosen. Errors: `notFound`; those of `selectShards`. */
  readonly lookup: (collection: string, shardKey?: ShardKeySelector) => Promise<Source>;
  /** 0 <= n < 1. */
  readonly random: () => number;
  /** What the inputs of a query were found to be: groups ask it several times. */
  readonly inputs: WeakMap<Scoring, Promise<ResolvedInputs>>;
  readonly terms: WeakMap<Scoring, Promise<TermSums | null>>;
  /** Null: the read is not to be explained. */
  readonly explainer: GatherExplainer | null;
}

/** What a read does besides deciding. */
export interface GatherActs {
  /** See `GatherAccess`. */
  readonly place: GatherPlace;
  readonly isPlain?: true | undefined;
  readonly locate: (collection: string) => Promise<GatherPlace>;
  readonly scatter: (ask: GatherAsk) => Promise<readonly Uint8Array[]>;
  /** Whether the time of the request is over. */
  readonly expired: () => boolean;
  /** Runs something once all that can go on now has gone on. */
  readonly later: (run: () => void) => void;
  readonly random: () => number;
  /** Monotonic milliseconds, for what is told of a read. */
  readonly nowMs: () => number;
}

export function gatherContext(
  { place, isPlain, locate, scatter, expired, later, nowMs, random }: GatherActs,
  explainer: GatherExplainer | null = null,
): GatherContext {
  const places = new Map<string, Promise<GatherPlace>>();
  return {
    source: { collection: null, place, shards: null },
    portions: new Portions({ isPlain, scatter, expired, later, nowMs }, explainer),
    lookup: async (collection, shardKey) => {
      const known = places.get(collection) ?? locate(collection);
      places.set(collection, known);
      return chosenShards({ collection, place: await known, shards: null }, shardKey);
    },
    random,
    inputs: new WeakMap(),
    terms: new WeakMap(),
    explainer,
  };
}

/** The same over the shards of some keys. Errors: those of `selectShards`. */
export function within(context: GatherContext, shardKey: ShardKeySelector | undefined): GatherContext {
  return shardKey === undefined ? context : { ...context, source: chosenShards(context.source, shardKey) };
}

/** All of them; when some fail, the error of the first of those, as if they had run one after the other. */
export async function allInOrder<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  return settled.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}

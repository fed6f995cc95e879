/**
 * Rate limits of strict mode for a collection's reads and writes on this node: each replica that answers here has its tokens. A request
 * takes its tokens once, whatever number of the node's replicas it reaches.
 */

import { errorFromFacts } from '../../../protocols/errors.js';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import type { Clock } from '../../runtime/ports.js';
import { newBucket, type RateBucket, takeTokens } from './rate.js';

interface Buckets {
  read: RateBucket | null;
  write: RateBucket | null;
}

export class RateLimits {
  /** Keyed by a collection's entry, so that a later collection of the same name begins with full buckets. */
  readonly #buckets = new WeakMap<object, Buckets>();

  constructor(private readonly clock: Clock) {}

  /** Takes the tokens of a request. owner: the collection on this node. cost: in tokens. Errors: `rateLimited`; nothing was done then. */
  take(owner: object, config: CollectionConfig | null, kind: 'read' | 'write', cost: number): void {
    const buckets = this.#bucketsOf(owner);
    const taken = this.#tryTake(buckets, config, kind, cost);
    if (taken === null) return;
    buckets[kind] = taken.bucket;
    if (taken.error !== null) throw errorFromFacts(taken.error);
  }

  /** Checks for one token without taking it. Errors: `rateLimited` if there is not even the token of the smallest request. */
  check(owner: object, config: CollectionConfig | null, kind: 'read' | 'write'): void {
    const error = this.#tryTake(this.#bucketsOf(owner), config, kind, 1)?.error ?? null;
    if (error !== null) throw errorFromFacts(error);
  }

  /** The result of taking tokens; null if there is no limit. */
  #tryTake(buckets: Buckets, config: CollectionConfig | null, kind: 'read' | 'write', cost: number): ReturnType<typeof takeTokens> | null {
    const limit = limitOf(config, kind);
    if (limit === null) return null;
    const nowMs = this.clock.nowMs();
    const known = buckets[kind];
    const bucket = known?.perMinute === limit ? known : newBucket(limit, nowMs);
    return takeTokens(bucket, cost, kind === 'read' ? 'Read' : 'Write', nowMs);
  }

  #bucketsOf(owner: object): Buckets {
    const buckets = this.#buckets.get(owner) ?? { read: null, write: null };
    this.#buckets.set(owner, buckets);
    return buckets;
  }
}

/** Tokens per minute; null for no limit. */
export function limitOf(config: CollectionConfig | null, kind: 'read' | 'write'): number | null {
  const strict = config?.strict_mode_config;
  const limit = strict?.enabled === true ? strict[`${kind}_rate_limit`] : undefined;
  return typeof limit === 'number' ? limit : null;
}

/**
 * What strict mode lets through of a collection's reads and writes on this node: each replica that answers here has its tokens. A
 * request takes its tokens once, whatever number of the node's replicas it reaches.
 */

import { errorFromFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { Clock } from '../runtime/ports.js';
import { newBucket, type RateBucket, takeTokens } from './rate.js';

interface Buckets {
  read: RateBucket | null;
  write: RateBucket | null;
}

export class RateLimits {
  /** A collection's entry, so that a later one of the same name begins with full buckets. */
  readonly #buckets = new WeakMap<object, Buckets>();

  constructor(private readonly clock: Clock) {}

  /** cost: in tokens. Errors: `rateLimited`; nothing was done then. owner: the collection on this node. */
  take(owner: object, config: CollectionConfig | null, kind: 'read' | 'write', cost: number): void {
    const limit = limitOf(config, kind);
    if (limit === null) return;
    const buckets = this.#buckets.get(owner) ?? { read: null, write: null };
    this.#buckets.set(owner, buckets);
    const nowMs = this.clock.nowMs();
    const known = buckets[kind];
    const bucket = known?.perMinute === limit ? known : newBucket(limit, nowMs);
    const taken = takeTokens(bucket, cost, kind === 'read' ? 'Read' : 'Write', nowMs);
    buckets[kind] = taken.bucket;
    if (taken.error !== null) throw errorFromFacts(taken.error);
  }
}

/** Tokens a minute; null: any number of requests. */
export function limitOf(config: CollectionConfig | null, kind: 'read' | 'write'): number | null {
  const strict = config?.strict_mode_config;
  const limit = strict?.enabled === true ? strict[`${kind}_rate_limit`] : undefined;
  return typeof limit === 'number' ? limit : null;
}

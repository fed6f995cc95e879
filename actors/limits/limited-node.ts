/** A node whose requests about points are held to the limits of their collections, and of the node. */

import type { CollectionEntry } from '../node/view.js';
import type { NodeApi } from '../node-api.js';
import type { Clock, Timers } from '../runtime/ports.js';
import { openGate } from './gate.js';
import { RateLimits } from './limits.js';

/**
 * entryOf: the collection of this name or alias on this node; null: it has no replica of it, and no limit of its own then.
 * updates: `storage.performance.update_rate_limit`, updates that go on at a time; null: any number.
 */
export function withLimits(
  node: NodeApi,
  entryOf: (name: string) => CollectionEntry | null,
  updates: number | null,
  clock: Clock,
  timers: Timers,
): NodeApi {
  const limits = new RateLimits(clock);
  const gate = openGate(updates, clock, timers);
  const take = (name: string, kind: 'read' | 'write') => {
    const entry = entryOf(name);
    if (entry !== null) limits.take(entry, entry.config, kind);
  };
  return {
    ...node,
    read: async (name, operation, request) => {
      take(name, 'read');
      return node.read(name, operation, request);
    },
    write: async (name, operation, wait, request) => {
      take(name, 'write');
      return gate.enter(request.deadlineMs, () => node.write(name, operation, wait, request));
    },
  };
}

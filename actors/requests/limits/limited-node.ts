/** A node whose requests about points are held to the limits of their collections, and of the node. */

import type { RawRequest, ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';
import type { CollectionEntry } from '../../context/view.js';
import type { Clock, EnginePort, Timers } from '../../runtime/ports.js';
import type { NodeApi } from '../../start/node-api.js';
import { openGate } from './gate.js';
import { limitOf, RateLimits } from './limits.js';

/** Requests that cost one token whatever they say: nobody has to look into them. */
const COST_ONE: ReadonlySet<ReadOperation | WriteOperation> = new Set<ReadOperation | WriteOperation>([
  'getPoint',
  'scroll',
  'count',
  'facet',
  'search',
  'recommend',
  'discover',
  'searchGroups',
  'recommendGroups',
  'createFieldIndex',
  'deleteFieldIndex',
]);

/**
 * entryOf: the collection of this name or alias on this node; null: it has no replica of it, and no limit of its own then.
 * updates: `storage.performance.update_rate_limit`, updates that go on at a time; null: any number.
 */
export function withLimits(
  node: NodeApi,
  entryOf: (name: string) => CollectionEntry | null,
  engine: Pick<EnginePort, 'weigh'>,
  updates: number | null,
  clock: Clock,
  timers: Timers,
): NodeApi {
  const limits = new RateLimits(clock);
  const gate = openGate(updates, clock, timers);

  /** cost: asked for where there is a token at all, so that nobody looks into what is refused anyway. */
  async function take(entry: CollectionEntry, kind: 'read' | 'write', cost: () => Promise<number>): Promise<void> {
    limits.check(entry, entry.config, kind);
    limits.take(entry, entry.config, kind, await cost());
  }

  async function takeRead(name: string, operation: ReadOperation, request: RawRequest): Promise<void> {
    const entry = entryOf(name);
    if (entry === null || limitOf(entry.config, 'read') === null) return;
    await take(entry, 'read', async () => (COST_ONE.has(operation) ? 1 : engine.weigh({ kind: 'read', operation, request })));
  }

  async function takeWrite(name: string, operation: WriteOperation, request: RawRequest): Promise<void> {
    const entry = entryOf(name);
    if (entry?.config == null || limitOf(entry.config, 'write') === null) return;
    const { params } = entry.config;
    await take(entry, 'write', async () => (COST_ONE.has(operation) ? 1 : engine.weigh({ kind: 'write', operation, request, params })));
  }

  return {
    ...node,
    read: async (name, operation, request) => {
      await takeRead(name, operation, request);
      return node.read(name, operation, request);
    },
    write: async (name, operation, wait, request) => {
      await takeWrite(name, operation, request);
      return gate.enter(request.deadlineMs, () => node.write(name, operation, wait, request));
    },
  };
}

/** Requests about points, held to the limits of their collections, and of the node. */

import type { RawRequest, ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';
import type { CollectionEntry } from '../../context/view.js';
import type { Clock, EnginePort, Timers } from '../../runtime/ports.js';
import type { NodeApi } from '../node-api.js';
import { openGate } from './gate.js';
import { limitOf, RateLimits } from './limits.js';

/** What a request costs in tokens: one, whatever it says, or what an engine worker finds when it looks into the body. */
const COSTS: Readonly<Record<ReadOperation | WriteOperation, 'one' | 'weighed'>> = {
  retrieve: 'weighed',
  getPoint: 'one',
  scroll: 'one',
  count: 'one',
  query: 'weighed',
  queryBatch: 'weighed',
  queryGroups: 'weighed',
  search: 'one',
  searchBatch: 'weighed',
  searchGroups: 'one',
  recommend: 'one',
  recommendBatch: 'weighed',
  recommendGroups: 'one',
  discover: 'one',
  discoverBatch: 'weighed',
  facet: 'one',
  matrixPairs: 'weighed',
  matrixOffsets: 'weighed',
  upsertPoints: 'weighed',
  deletePoints: 'weighed',
  updateVectors: 'weighed',
  deleteVectors: 'weighed',
  setPayload: 'weighed',
  overwritePayload: 'weighed',
  deletePayload: 'weighed',
  clearPayload: 'weighed',
  batchUpdate: 'weighed',
  createFieldIndex: 'one',
  deleteFieldIndex: 'one',
};

type PointsApi = Pick<NodeApi, 'read' | 'write'>;

/**
 * entryOf: the collection of this name or alias on this node; null: it has no replica of it, and no limit of its own then.
 * updates: `storage.performance.update_rate_limit`, updates that go on at a time; null: any number.
 */
export function limitedPoints(
  points: PointsApi,
  entryOf: (name: string) => CollectionEntry | null,
  engine: Pick<EnginePort, 'weigh'>,
  updates: number | null,
  clock: Clock,
  timers: Timers,
): PointsApi {
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
    await take(entry, 'read', async () => (COSTS[operation] === 'one' ? 1 : engine.weigh({ kind: 'read', operation, request })));
  }

  async function takeWrite(name: string, operation: WriteOperation, request: RawRequest): Promise<void> {
    const entry = entryOf(name);
    if (entry?.config == null || limitOf(entry.config, 'write') === null) return;
    const { params } = entry.config;
    await take(entry, 'write', async () => (COSTS[operation] === 'one' ? 1 : engine.weigh({ kind: 'write', operation, request, params })));
  }

  return {
    read: async (name, operation, request) => {
      await takeRead(name, operation, request);
      return points.read(name, operation, request);
    },
    write: async (name, operation, wait, request) => {
      await takeWrite(name, operation, request);
      return gate.enter(request.deadlineMs, () => points.write(name, operation, wait, request));
    },
  };
}

/** Applies the limits of collections and of the node to requests about points. */

import type { RawRequest, ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';
import type { MemoryRoom } from '../../context/memory-room.js';
import type { CollectionEntry } from '../../context/view.js';
import type { Clock, EnginePort, Timers } from '../../runtime/ports.js';
import type { NodeApi } from '../node-api.js';
import { openGate } from './gate.js';
import { checkGrowth } from './growth.js';
import { limitOf, RateLimits } from './limits.js';

/** The cost of a request in tokens: always one, or the weight that an engine worker finds in the body. */
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
 * Points with limits. entryOf: the collection of this name or alias on this node; null if the node has no replica of it, and then no limit
 * of its own applies. updates: `storage.performance.update_rate_limit`, the number of updates that run at a time; null for any number.
 */
export function limitedPoints(
  points: PointsApi,
  entryOf: (name: string) => CollectionEntry | null,
  engine: Pick<EnginePort, 'weigh'>,
  updates: number | null,
  room: MemoryRoom,
  clock: Clock,
  timers: Timers,
): PointsApi {
  const limits = new RateLimits(clock);
  const gate = openGate(updates, clock, timers);

  /** Takes the tokens of a request. cost: computed only if there is a token at all, so that a refused request's body is not examined. */
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
      checkGrowth(room, operation, request.body?.byteLength ?? 0);
      await takeWrite(name, operation, request);
      return gate.enter(request.deadlineMs, () => points.write(name, operation, wait, request));
    },
  };
}

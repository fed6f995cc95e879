import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionEntry } from '../../../actors/context/view.js';
import { NodeView } from '../../../actors/context/view.js';
import { retire } from '../../../actors/shard-log/retiring.js';
import type { ReplicationStatus } from '../../../actors/shard-log/view.js';
import type { ClusterCommand } from '../../../cluster/state/commands.js';
import { Peers, SELF, UID } from '../requests/support.js';

const OTHER = 2;

/** What a node proposes that stops, leading shard 0 of two: the peers of the changes' shards. held: the other's position, and that after a while. */
async function proposedWith(held: number | null, later = held): Promise<readonly number[]> {
  const peers = new Peers();
  peers.connected = new Set([OTHER]);
  peers.agree({ 0: { leader: SELF, [SELF]: 'Active', [OTHER]: 'Active' }, 1: { leader: OTHER, [SELF]: 'Active', [OTHER]: 'Active' } });
  const leadingWith = (position: number | null): ReplicationStatus => {
    const phase = position === null ? 'Probing' : 'Streaming';
    const follower = { peer: OTHER, phase, required: true, position, error: null } as const;
    return { role: 'Leading', term: 1, position: 9, waiting: 0, followers: [follower] };
  };
  let leading = leadingWith(held);
  const following: ReplicationStatus = { role: 'Following', term: 1, position: null, waiting: 0, followers: [] };
  const entryOf = (status: () => ReplicationStatus) => ({ status, actor: { ask: async () => true } });
  const view = new NodeView();
  const replications = new Map([() => leading, () => following].map((status, shardId) => [shardId, entryOf(status)]));
  view.list({ name: 'c', belonging: { uid: UID }, replications } as unknown as CollectionEntry);
  const proposed: ClusterCommand[] = [];
  const propose = async (operation: ClusterCommand) => {
    proposed.push(operation);
    return true;
  };
  let sleeps = 0;
  const sleep = async () => {
    sleeps += 1;
    if (sleeps === 3) leading = leadingWith(later);
  };
  await retire({ assignments: peers.assignments, propose } as unknown as Parameters<typeof retire>[0], view, sleep);
  assert.equal(peers.assignments.isAloneWithout(OTHER), false);
  return proposed.flatMap((operation) => (operation.kind === 'setReplicaStates' ? operation.changes.map(({ shardId }) => shardId) : []));
}

test('a node that stops hands over the shards that it leads, and says of the others that it is away', async () => {
  assert.deepEqual(await proposedWith(9), [0, 1]);
});

test('a node that stops does not hand over a shard of which it alone has what was acknowledged', async () => {
  assert.deepEqual(await proposedWith(8), [1]);
  assert.deepEqual(await proposedWith(null), [1]);
});

test('a node that stops just after it came to lead waits a moment until it knows what the others have', async () => {
  assert.deepEqual(await proposedWith(null, 9), [0, 1]);
});

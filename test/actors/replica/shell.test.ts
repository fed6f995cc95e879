import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ReplicaProps, replicaBehaviour } from '../../../actors/replica/shell.js';
import { closingReplica, failedReplica, openingReplica, type ReplicaLife, servingReplica } from '../../../actors/replica/state.js';
import type { ReplicaState } from '../../../protocols/model/cluster.js';
import { sampleConfig } from '../samples.js';

const CONFIG = sampleConfig();
const SELF = 7;

/** What the tree of actors shows of a replica of which this is agreed. agreed: 'alone' for a node of its own, null where nothing is agreed. */
function factsOf(state: ReplicaLife, agreed: ReplicaState | 'alone' | null): Readonly<Record<string, string | number>> | undefined {
  const replicas = new Map(agreed === null || agreed === 'alone' ? [] : [[SELF, agreed]]);
  const props = {
    shardId: 0,
    entry: { name: 'c', belonging: agreed === 'alone' ? null : { uid: 1 } },
    key: 'c/0',
    services: {
      engine: { stats: () => null },
      barrier: agreed === 'alone' ? null : () => {},
      assignments: { peerId: SELF, of: () => ({ replicas }) },
    },
  };
  return replicaBehaviour().facts?.(props as unknown as ReplicaProps, state);
}

test('a replica of a cluster shows the agreed state, whatever its life on this node is', () => {
  for (const agreed of ['Active', 'Partial', 'Dead', 'Listener'] as const)
    assert.deepEqual(factsOf(servingReplica(CONFIG), agreed), { replicaState: agreed });
  const broken = failedReplica(CONFIG, { code: 'storage', detail: 'damaged' }, 1);
  assert.deepEqual(factsOf(broken, 'Active'), { replicaState: 'Active' });
});

test('a replica of which nothing is agreed, because it was dropped, shows its life alone', () => {
  assert.deepEqual(factsOf(closingReplica(), null), {});
});

test('a replica of a node of its own is Initializing, Active or Dead as its life is', () => {
  const lives = [
    openingReplica(CONFIG, 0, null),
    servingReplica(CONFIG),
    failedReplica(CONFIG, { code: 'storage', detail: 'damaged' }, 1),
    closingReplica(),
  ];
  const shown = lives.map((life) => factsOf(life, 'alone')?.replicaState);
  assert.deepEqual(shown, ['Initializing', 'Active', 'Dead', 'Dead']);
});

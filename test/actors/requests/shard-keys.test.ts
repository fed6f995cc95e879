import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Agreed } from '../../../actors/requests/points.js';
import { keyedShards, showShardKeys } from '../../../actors/requests/shard-keys.js';
import { clusterUpdateInSteps } from '../../../actors/requests/update-collection-cluster.js';
import type { ShardFigures } from '../../../cluster/data-messages.js';
import type { CollectionRecord } from '../../../cluster/state/state.js';
import type { CollectionClusterUpdate, KeyedShard, ReplicaState, ShardId, ShardKey } from '../../../protocols/model/cluster.js';
import { sampleConfig } from '../samples.js';
import { Peers, SELF, UID } from './support.js';

/** Shards with their key and the state of their one replica. */
function recordOf(shards: readonly (readonly [ShardId, ShardKey | null, ReplicaState])[], custom = true): CollectionRecord {
  const config = sampleConfig();
  return {
    uid: UID,
    revision: 1,
    config: custom ? { ...config, params: { ...config.params, sharding_method: 'custom' } } : config,
    shards: new Map(
      shards.map(([id, key, state]) => [
        id,
        { key, replicas: new Map([[SELF, state]]), since: new Map([[SELF, 1]]), leader: SELF, term: 1 },
      ]),
    ),
    nextShardId: 10,
    transfers: [],
    autoReplication: false,
    shardMapVersion: UID,
    resharding: null,
    closedKeys: [],
    keyCopy: null,
    payloadIndexes: new Map(),
  };
}

test('the engine hears of the keys of all collections that have some, once for each change of them', () => {
  const peers = new Peers();
  const heard: ReadonlyMap<string, readonly KeyedShard[]>[] = [];
  const cancel = showShardKeys(peers.assignments, { setShardKeys: (shards) => heard.push(shards) });
  const keyed = recordOf([
    [3, 7, 'Partial'],
    [0, 'a', 'Active'],
  ]);
  const plain = recordOf([[0, null, 'Active']], false);
  peers.show({ plain });
  assert.equal(heard.length, 0);
  peers.show({ plain, keyed });
  const shards = [
    { id: 0, key: 'a', active: true },
    { id: 3, key: 7, active: false },
  ];
  assert.deepEqual(heard, [new Map([['keyed', shards]])]);
  assert.equal(keyedShards(keyed), heard[0]?.get('keyed'));
  peers.show({ plain: recordOf([[0, null, 'Active']], false), keyed });
  assert.equal(heard.length, 1);
  peers.show({ keyed: recordOf([]) });
  peers.show({});
  assert.deepEqual(heard.slice(1), [new Map([['keyed', []]]), new Map()]);
  cancel();
  peers.show({ keyed });
  assert.equal(heard.length, 3);
});

const FIGURES: ShardFigures = {
  status: 'green',
  error: null,
  points: 1,
  deferredPoints: 0,
  indexedVectors: 0,
  segments: 1,
  queuedOperations: 0,
  fields: [
    { field: 'a.b', schema: { type: 'keyword' }, points: 1 },
    { field: '__proto__', schema: { type: 'integer', params: { type: 'integer', lookup: true, range: null } }, points: 0 },
  ],
};

/** What is written when this key is made. figures: what the other shards' node tells; null: nothing. */
async function written(record: CollectionRecord, setup: CollectionClusterUpdate, figures: ShardFigures | null): Promise<string[]> {
  const peers = new Peers();
  peers.show({ c: record });
  if (figures !== null) peers.answers.set(SELF, () => ({ kind: 'figures', figures: [figures] }));
  const writes: string[] = [];
  const update = clusterUpdateInSteps(async () => true, {
    routes: peers.routes,
    find: (name) => ({ name, entry: null, record }),
    points: {
      writeShards: async (found: Agreed, operation, wait, { body }) => {
        writes.push(`${[...found.record.shards.keys()].join('+')} ${operation} ${wait} ${Buffer.from(body ?? []).toString()}`);
        return new Uint8Array(0);
      },
    },
  });
  assert.equal(await peers.outcome(update('c', setup, 1000)), true);
  return writes;
}

const created = (key: ShardKey): CollectionClusterUpdate => ({
  kind: 'createShardKey',
  key,
  shardsNumber: null,
  replicationFactor: null,
  placement: null,
  initialState: null,
});
const SHARDS = [
  [0, 'a', 'Active'],
  [1, 'b', 'Active'],
  [2, 'b', 'Initializing'],
] as const;

test('the shards of a new key get the indexes that others have, and nobody else is asked for them', async () => {
  assert.deepEqual(await written(recordOf(SHARDS), created('b'), FIGURES), [
    '1+2 createFieldIndex true {"field_name":"a.b","field_schema":"keyword"}',
    '1+2 createFieldIndex true {"field_name":"__proto__","field_schema":{"type":"integer","lookup":true,"range":null}}',
  ]);
  const first = recordOf(SHARDS.slice(0, 1));
  assert.deepEqual(await written(first, created('a'), null), [], 'the first key');
  const payloadIndexes = new Map([['n', { type: 'integer' as const }]]);
  const index = 'createFieldIndex true {"field_name":"n","field_schema":"integer"}';
  assert.deepEqual(await written({ ...first, payloadIndexes }, created('a'), null), [`0 ${index}`], 'made before there was a key');
  assert.equal((await written({ ...recordOf(SHARDS), payloadIndexes }, created('b'), FIGURES)).at(-1), `1+2 ${index}`);
  assert.deepEqual(await written(recordOf(SHARDS), { kind: 'dropShardKey', key: 'c' }, null), []);
});

test('shards that are to be filled from others get no indexes of their own', async () => {
  const partial = recordOf([
    [0, 'a', 'Active'],
    [1, 'b', 'Partial'],
  ]);
  assert.deepEqual(await written(partial, created('b'), FIGURES), []);
});

test('when no other shard tells its indexes, whoever makes a key hears that they are missing', async () => {
  await assert.rejects(written(recordOf(SHARDS), created('b'), null), {
    code: 'unavailable',
    message: /key "b" was created.*create these again/,
    outcome: 'unknown',
  });
});

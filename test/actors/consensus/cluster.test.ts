import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { sampleConfig } from '../samples.js';
import { FakeCluster, type FakeNode, leaderOf } from './fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

/** What a node serves. */
function served({ api }: FakeNode) {
  return { collections: api.listCollections(), aliases: api.aliases(null).map(({ alias_name }) => alias_name) };
}

test('a node that founds a cluster leads it, and others that join become voters', async () => {
  const nodes = await world.founded(3);
  assert.equal(leaderOf(nodes), nodes[0]);
  const memberships = nodes.map(({ cluster }) => cluster.state()?.membership.map(({ uri, voter }) => `${uri} ${voter}`));
  assert.deepEqual(new Set(memberships[0]), new Set([1, 2, 3].map((number) => `${world.uri(number)} true`)));
  assert.deepEqual(memberships[1], memberships[0]);
  assert.deepEqual(memberships[2], memberships[0]);
  assert.equal(new Set(nodes.map(({ cluster }) => cluster.state()?.clusterId)).size, 1);
});

test('a collection that was created through any node is on all of them when it is answered, with Active replicas', async () => {
  const nodes = await world.founded(3);
  for (const [at, node] of nodes.entries()) {
    assert.equal(await world.run(node.api.createCollection(`collection-${at}`, sampleConfig())), true);
    for (const other of nodes) {
      assert.ok(other.api.exists(`collection-${at}`), `node ${other.number}`);
    }
    const record = node.cluster.state()?.collections.get(`collection-${at}`);
    assert.deepEqual([...(record?.shards.get(0)?.replicas.values() ?? [])], ['Active']);
  }
  const [one, two] = nodes as [FakeNode, FakeNode];
  assert.equal(await world.run(two.api.changeAliases([{ kind: 'create', alias: 'newest', collection: 'collection-2' }])), true);
  assert.deepEqual(served(one), { collections: ['collection-0', 'collection-1', 'collection-2'], aliases: ['newest'] });
  assert.equal(await world.run(one.api.deleteCollection('collection-2')), true);
  assert.equal(await world.run(one.api.deleteCollection('collection-2')), false);
  assert.deepEqual(served(two), { collections: ['collection-0', 'collection-1'], aliases: [] });
});

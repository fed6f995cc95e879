/** A leader whose network fails: it cannot be heard, cannot hear, or neither. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import { temporaryFolder, until } from './support.js';

const COLLECTION = { vectors: { size: 2, distance: 'Dot' } };
/** Far beyond what it takes: the machine may be busy. */
const LEADER_MS = 20_000;

test('a leader that is cut off, even one way only, is followed by another one, takes no changes and catches up when it is back', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  for (const way of ['unheard', 'deaf', 'parted']) {
    const old = await cluster.untilLeader(LEADER_MS);
    const others = cluster.nodes.filter((node) => node !== old);
    for (const other of others) {
      if (way !== 'deaf') cluster.cut(old.number, other.number);
      if (way !== 'unheard') cluster.cut(other.number, old.number);
    }
    const started = performance.now();
    const [leader] = await until(
      async () => {
        const answers = await Promise.all(others.map(async (node) => ({ node, role: (await node.cluster())?.raft_info.role })));
        return answers.filter(({ role }) => role === 'Leader').map(({ node }) => node);
      },
      (leaders) => leaders.length === 1,
      LEADER_MS,
    );
    t.diagnostic(`${way}: another leader after ${(performance.now() - started).toFixed(0)} ms`);
    assert.equal(await leader?.client.result('PUT', `/collections/${way}?timeout=20`, COLLECTION), true);
    const refused = await old.client.call('PUT', `/collections/at-${way}?timeout=2`, COLLECTION);
    assert.ok(refused.status === 503 || refused.status === 408, `${way}: ${refused.status} ${refused.text}`);
    // It takes itself for the leader until it has not heard of a majority for a while.
    await until(
      () => old.client.call('PUT', `/collections/at-${way}?timeout=2`, COLLECTION),
      ({ status, text }) => status === 503 && /no leader/.test(text),
    );
    cluster.heal();
    await until(
      () => old.client.call('GET', `/collections/${way}`),
      ({ status }) => status === 200,
    );
  }
});

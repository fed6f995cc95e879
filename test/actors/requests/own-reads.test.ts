import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CollectionEntry, NodeView, showFailed } from '../../../actors/context/view.js';
import { Names } from '../../../actors/requests/collection-names.js';
import { ownReads } from '../../../actors/requests/own-reads.js';
import { sampleConfig } from '../samples.js';

function entryOf(name: string, states: readonly ('Serving' | 'Opening')[], change: Partial<CollectionEntry> = {}): CollectionEntry {
  const config = sampleConfig();
  const entry: CollectionEntry = {
    name,
    folder: name,
    actor: null as never,
    config: { ...config, params: { ...config.params, shard_number: states.length } },
    belonging: null,
    error: null,
    replicas: new Map(states.map((state, at) => [at, { key: `${name}/${at}`, actor: null as never, state, reason: null }])),
    replications: new Map(),
    optimizers: new Map(),
    ...change,
  };
  return entry;
}

function readsOf(view: NodeView): Record<string, readonly string[]> {
  return Object.fromEntries(ownReads(new Names(view, () => null), view));
}

test('readers may read collections of which every shard serves, by name and alias', () => {
  const view = new NodeView();
  view.list(entryOf('whole', ['Serving']));
  view.list(entryOf('opening', ['Opening']));
  view.setAliases(
    new Map([
      ['alias', 'whole'],
      ['of-opening', 'opening'],
      ['opening', 'whole'],
    ]),
  );
  assert.deepEqual(readsOf(view), { whole: ['whole/0'], alias: ['whole/0'] });
});

test('readers may not read collections that limit reads, have no configuration, or were made in a cluster', () => {
  const view = new NodeView();
  const config = { ...sampleConfig(), strict_mode_config: { enabled: true, read_rate_limit: 5 } };
  view.list(entryOf('limited', ['Serving'], { config }));
  view.list(entryOf('damaged', ['Serving'], { config: null }));
  const belonging = { clusterId: 'c', peerId: 1, uid: 1, shards: [0], since: [1] } as unknown as CollectionEntry['belonging'];
  view.list(entryOf('clustered', ['Serving'], { belonging }));
  view.list(entryOf('limitless', ['Serving'], { config: { ...config, strict_mode_config: { enabled: false, read_rate_limit: 5 } } }));
  assert.deepEqual(Object.keys(readsOf(view)), ['limitless']);
});

test('each change of a collection, a replica or an alias is told at once', () => {
  const view = new NodeView();
  let changes = 0;
  view.watch(() => {
    changes++;
  });
  const entry = entryOf('c', ['Serving']);
  view.list(entry);
  assert.equal(changes, 1);
  showFailed(entry, 0, { code: 'storage', detail: 'the disk is gone' });
  assert.equal(changes, 2);
  assert.deepEqual(readsOf(view), {});
  view.setAliases(new Map([['alias', 'c']]));
  view.unlist('c');
  assert.equal(changes, 4);
});

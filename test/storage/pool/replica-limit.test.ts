import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import { beyondLimit, NO_REPLICA_LIMIT, replicaLimit } from '../../../storage/pool/replica-limit.js';
import { configOf, temporaryFolder } from '../replica/support.js';

const UNLIMITED = { addressBytes: Number.POSITIVE_INFINITY, descriptors: Number.POSITIVE_INFINITY, mappings: Number.POSITIVE_INFINITY };

test('what ends first sets the limit of replicas, and the reason says what to raise', () => {
  const typical = { addressBytes: 2 ** 47, descriptors: 1024, mappings: 65_530 };
  assert.deepEqual(replicaLimit(typical), {
    max: 153,
    limitedBy: 'descriptors',
    reason: 'this process can have 1024 open files; raise `ulimit -n` (`nofile`)',
  });
  assert.equal(replicaLimit({ ...typical, descriptors: 1_048_576 }).limitedBy, 'mappings');
  const narrow = replicaLimit({ ...typical, addressBytes: 2 ** 37 });
  assert.equal(narrow.limitedBy, 'addressBytes');
  assert.match(narrow.reason, /128 GiB of addresses; raise `ulimit -v`/);
});

test('what is not known or has no limit sets none', () => {
  assert.deepEqual(replicaLimit(UNLIMITED), NO_REPLICA_LIMIT);
  assert.deepEqual(replicaLimit({ addressBytes: null, descriptors: null, mappings: null }), NO_REPLICA_LIMIT);
  assert.equal(beyondLimit(NO_REPLICA_LIMIT, 1_000_000, 1_000_000), null);
});

test('as many replicas as the limit says fit, and one more does not', () => {
  const limit = { max: 3, limitedBy: 'descriptors', reason: 'why' } as const;
  assert.equal(beyondLimit(limit, 1, 2), null);
  assert.equal(
    beyondLimit(limit, 2, 2),
    '2 more replicas of shards and the 2 that this node has are more than the 3 that it has room for: why',
  );
});

test('a new replica beyond the limit is refused by the engine, and one that was made before is opened', async (t) => {
  const base = temporaryFolder(t);
  const specOf = (shard: number) => ({ key: `c/${shard}` as const, folder: path.join(base, String(shard)), config: configOf() });
  const roomy = await EnginePool.start({ readers: 1, writers: 1 });
  await Promise.all([0, 1].map((shard) => roomy.openReplica(specOf(shard), null)));
  assert.deepEqual(roomy.depths().replicas, { open: 2, ...NO_REPLICA_LIMIT });
  await roomy.close();

  const replicaLimit = { max: 1, limitedBy: 'descriptors', reason: 'why' } as const;
  const narrow = await EnginePool.start({ readers: 1, writers: 1, replicaLimit });
  t.after(() => narrow.close());
  for (const shard of [0, 1]) await narrow.openReplica(specOf(shard), null);
  await assert.rejects(narrow.openReplica(specOf(2), null), (error) => {
    assert.ok(error instanceof TroupeError);
    assert.equal(error.code, 'storage');
    assert.equal(error.outcome, 'none');
    assert.match(error.detail, /replica c\/2 is not made: 1 more replica of shards and the 2 that this node has are more than the 1/);
    return true;
  });
  assert.deepEqual(narrow.depths().replicas, { open: 2, ...replicaLimit });
});

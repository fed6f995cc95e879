import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copyTransfers, effectiveConfig, holdsWrites, migrationOf, migrationTasks, partOf } from '../../cluster/apply/migration.js';
import { servingShards } from '../../cluster/apply/resharding.js';
import type { CollectionRecord, KeyCopy } from '../../cluster/state/state.js';
import { decodeState, encodeState } from '../../cluster/state/state-codec.js';
import { CUSTOM, Log } from './samples.js';

const COPY = { kind: 'startKeyCopy', collection: 'a', source: 'all', target: 'one', filter: '{"must":[]}' } as const;

/** Shards 0 and 1 under `all`, shard 2 under `one`, which waits to be filled, shard 3 under 7; all are led. */
function begun(closed = true): Log {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: CUSTOM, placement: [] });
  const key = (name: string | number, placement: number[][], isClosed = false) => {
    const operation = { kind: 'createShardKey', collection: 'a', key: name, placement, initialState: null, closed: isClosed } as const;
    assert.equal(log.say(operation), 'done');
  };
  key('all', [[11], [12]]);
  key('one', [[13, 11]], closed);
  key(7, [[12]]);
  const { shards, uid } = recordOf(log);
  const changes = [...shards].flatMap(([shardId, { replicas }]) =>
    [...replicas].map(([peerId]) => ({ collection: 'a', uid, shardId, peerId, from: null, to: 'Active' as const, term: null })),
  );
  assert.equal(log.propose({ kind: 'setReplicaStates', changes }).kind, 'done');
  return log;
}

function recordOf({ state }: Log): CollectionRecord {
  return state.collections.get('a') as CollectionRecord;
}

function shown(log: Log): string {
  const record = recordOf(log);
  const migration = migrationOf(record);
  const serving = `serving ${[...servingShards(record).keys()].join()}`;
  if (migration === null) return serving;
  const held = [...record.shards.keys()].filter((shardId) => holdsWrites(record, shardId)).join() || 'none';
  return `${migration.stage}: ${serving}, ${migration.busy.join()} to ${migration.receiving.join()}, done ${migration.done.join() || 'none'}, held ${held}`;
}

function finish(log: Log, shardId: number): string {
  const { keyCopy, shards } = recordOf(log);
  const { stage, startedAt } = keyCopy as KeyCopy;
  return log.say({ kind: 'finishStage', collection: 'a', startedAt, stage, shardId, term: shards.get(shardId)?.term as number });
}

test('a closed key has no points for anybody until it is filled and opened, behind the last writes of its source', () => {
  const log = begun();
  assert.equal(shown(log), 'serving 0,1,3');
  const { shardMapVersion } = recordOf(log);
  assert.equal(log.say(COPY), 'done');
  assert.deepEqual(decodeState(encodeState(log.state)), log.state);
  assert.equal(shown(log), 'copying: serving 0,1,3, 0,1 to 2, done none, held none');
  assert.equal(finish(log, 0), 'done');
  assert.equal(finish(log, 0), 'unchanged');
  assert.equal(shown(log), 'copying: serving 0,1,3, 0,1 to 2, done 0, held none');
  assert.deepEqual(
    [11, 12, 13].map((peer) =>
      [...migrationTasks(log.state, peer).values()].flatMap((task) =>
        partOf(log.state, task, peer)?.isDone === false ? [task.shardId] : [],
      ),
    ),
    [[], [1], []],
  );
  assert.equal(finish(log, 1), 'done');
  assert.equal(shown(log), 'switching: serving 0,1,3, 0,1 to 2, done none, held 0,1');
  assert.equal(recordOf(log).shardMapVersion, shardMapVersion);
  finish(log, 0);
  finish(log, 1);
  assert.equal(shown(log), 'serving 0,1,2,3');
  assert.ok(recordOf(log).shardMapVersion > shardMapVersion);
});

test('copies to an open key are there at once, and nothing is switched', () => {
  const log = begun(false);
  assert.equal(log.say(COPY), 'done');
  assert.equal(migrationOf(recordOf(log))?.mirrors, false);
  assert.equal(shown(log), 'copying: serving 0,1,2,3, 0,1 to 2, done none, held none');
  finish(log, 0);
  finish(log, 1);
  assert.equal(shown(log), 'serving 0,1,2,3');
});

test('a copy is a transfer from each shard of the one key to each of the other, which is aborted or begun again by any of them', () => {
  const log = begun();
  log.propose(COPY);
  const leader = recordOf(log).shards.get(2)?.leader as number;
  const transfers = copyTransfers(recordOf(log)).map(({ from, shardId, to, toShardId }) => ({ from, shardId, to, toShardId }));
  assert.deepEqual(transfers, [
    { from: 11, shardId: 0, to: leader, toShardId: 2 },
    { from: 12, shardId: 1, to: leader, toShardId: 2 },
  ]);
  const [first, second] = transfers as [(typeof transfers)[0], (typeof transfers)[0]];
  finish(log, 0);
  const { startedAt } = recordOf(log).keyCopy as KeyCopy;
  const restart = { kind: 'restartTransfer', collection: 'a', transfer: second, term: null } as const;
  assert.match(log.say({ ...restart, method: 'snapshot' }), /uses the method `stream_records`, not `snapshot`/);
  assert.equal(log.say({ ...restart, method: 'stream_records' }), 'done');
  assert.ok((recordOf(log).keyCopy?.startedAt ?? 0) > startedAt);
  assert.equal(shown(log), 'copying: serving 0,1,3, 0,1 to 2, done none, held none');
  const abort = { kind: 'abortTransfer', collection: 'a', reason: 'test', term: null } as const;
  assert.match(
    log.say({ ...abort, transfer: { ...first, toShardId: 3 } }),
    /Shard transfer 11 -> 11 for collection a:0 to 3 does not exist/,
  );
  assert.equal(log.say({ ...abort, transfer: first }), 'done');
  assert.equal(shown(log), 'serving 0,1,3');
  assert.match(log.say({ ...abort, transfer: first }), /does not exist/);
  assert.equal(log.say(COPY), 'done');
});

test('a copy is refused where keys do not fit, or something else is going on', () => {
  const log = begun();
  assert.match(log.say({ ...COPY, target: 'all' }), /cannot be copied to itself/);
  assert.match(log.say({ ...COPY, target: 'none' }), /Shard key "none" not found/);
  assert.match(log.say({ ...COPY, source: 'none' }), /Shard key "none" not found/);
  assert.match(log.say({ ...COPY, source: 'one', target: 'all' }), /has no points before `replicate_points` has filled it/);
  const resharding = { kind: 'startResharding', collection: 'a', direction: 'up', placement: [[12]] } as const;
  assert.match(log.say({ ...resharding, key: 'one' }), /has no points before/);
  assert.equal(log.say(COPY), 'done');
  assert.match(log.say({ ...COPY, target: 7 }), /points of shard key "all" of collection `a` are being copied to "one"/);
  assert.match(log.say({ ...resharding, key: 7 }), /are being copied/);
  const { uid } = recordOf(log);
  const dead = { collection: 'a', uid, shardId: 3, peerId: 12, from: null, to: 'Dead', term: null } as const;
  log.propose({ kind: 'setReplicaStates', changes: [dead] });
  const fresh = begun();
  fresh.propose({ kind: 'setReplicaStates', changes: [{ ...dead, uid: recordOf(fresh).uid }] });
  assert.match(fresh.say({ ...COPY, target: 7 }), /shard 3 of shard key 7 has no Active replica/);
});

test('replicas hold no points back while points go to other shards, and the cluster carries that out as it does settings', () => {
  const log = begun();
  const { config, revision } = recordOf(log);
  const prevents = { ...config, optimizer_config: { ...config.optimizer_config, prevent_unoptimized: true } };
  assert.equal(log.say({ kind: 'updateCollection', name: 'a', config: prevents, basedOn: revision }), 'done');
  const shownConfig = () => {
    const record = recordOf(log);
    return [record.config, effectiveConfig(record)].map(({ optimizer_config }) => optimizer_config.prevent_unoptimized);
  };
  const revisions = [recordOf(log).revision];
  assert.deepEqual(shownConfig(), [true, true]);
  log.propose(COPY);
  revisions.push(recordOf(log).revision);
  assert.deepEqual(shownConfig(), [true, false]);
  for (const shardId of [0, 1]) finish(log, shardId);
  revisions.push(recordOf(log).revision);
  assert.deepEqual(shownConfig(), [true, false]);
  for (const shardId of [0, 1]) finish(log, shardId);
  revisions.push(recordOf(log).revision);
  assert.deepEqual(shownConfig(), [true, true]);
  const [first, copying, switching, over] = revisions as [number, number, number, number];
  assert.ok(first < copying && copying === switching && switching < over, revisions.join());
});

test('a copy ends with the key that it goes from or to, and a key of the same name is another one', () => {
  for (const key of ['all', 'one']) {
    const log = begun();
    log.propose(COPY);
    assert.equal(log.say({ kind: 'dropShardKey', collection: 'a', key }), 'done');
    assert.equal(migrationOf(recordOf(log)), null);
    assert.deepEqual(recordOf(log).closedKeys, key === 'one' ? [] : ['one']);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holdsWrites, migrationTasks, partOf } from '../../../cluster/apply/migration.js';
import { busyShards, comingRing, hidingRing, servingShards } from '../../../cluster/apply/resharding.js';
import type { CollectionRecord, Resharding, ShardRecord } from '../../../cluster/state/state.js';
import { decodeState, encodeState } from '../../../cluster/state/state-codec.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { configOf, Log } from '../samples.js';

const UP = { kind: 'startResharding', collection: 'a', direction: 'up', key: null, placement: [[12, 13]] } as const;
const DOWN = { ...UP, direction: 'down', placement: [] } as const;

/** A collection of two shards on two peers each, all Active. */
function begun(peers: readonly PeerId[] = [11, 12]): Log {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: configOf(), placement: [peers, peers] });
  activate(log);
  return log;
}

function activate(log: Log): void {
  const { shards, uid } = recordOf(log);
  const changes = [...shards].flatMap(([shardId, { replicas }]) =>
    [...replicas].map(([peerId]) => ({ collection: 'a', uid, shardId, peerId, from: null, to: 'Active' as const, term: null })),
  );
  assert.equal(log.propose({ kind: 'setReplicaStates', changes }).kind, 'done');
}

function recordOf({ state }: Log): CollectionRecord {
  return state.collections.get('a') as CollectionRecord;
}

/** Shards that serve, the ring that hides, the coming ring, who is busy, and who holds writes. */
function shown(log: Log): string {
  const record = recordOf(log);
  const { resharding } = record;
  const serving = [...servingShards(record).keys()].join();
  if (resharding === null) return `serving ${serving}`;
  const held = [...record.shards.keys()].filter((shardId) => holdsWrites(record, shardId)).join();
  const rings = `hiding by ${hidingRing(record)?.join()}, coming ${comingRing(record, resharding).join()}`;
  return `${resharding.stage}: serving ${serving}, ${rings}, busy ${busyShards(record, resharding).join()}, held ${held || 'none'}`;
}

/** All busy shards finish the stage. */
function finish(log: Log): void {
  const record = recordOf(log);
  const { stage, startedAt } = record.resharding as Resharding;
  for (const shardId of busyShards(record, record.resharding as Resharding)) {
    const term = recordOf(log).shards.get(shardId)?.term as number;
    assert.equal(log.say({ kind: 'finishStage', collection: 'a', startedAt, stage, shardId, term }), 'done');
  }
}

test('a shard that comes gets copies unseen, then writes wait, then it serves and what is left over is removed', () => {
  const log = begun();
  const { shardMapVersion } = recordOf(log);
  assert.equal(log.say(UP), 'done');
  assert.ok(recordOf(log).shardMapVersion > shardMapVersion);
  activate(log);
  assert.equal(shown(log), 'copying: serving 0,1, hiding by 0,1, coming 0,1,2, busy 0,1, held none');
  assert.deepEqual(decodeState(encodeState(log.state)), log.state);
  finish(log);
  assert.equal(shown(log), 'switching: serving 0,1, hiding by 0,1, coming 0,1,2, busy 0,1, held 0,1');
  const before = recordOf(log);
  finish(log);
  assert.equal(shown(log), 'cleaning: serving 0,1,2, hiding by 0,1,2, coming 0,1,2, busy 0,1, held none');
  assert.ok(recordOf(log).shardMapVersion > before.shardMapVersion);
  assert.equal(recordOf(log).config.params.shard_number, before.config.params.shard_number + 1);
  assert.match(log.say({ kind: 'abortResharding', collection: 'a' }), /can no longer be aborted/);
  finish(log);
  assert.equal(shown(log), 'serving 0,1,2');
});

test('a shard that goes gives its points to the others, which hide them until it is gone', () => {
  const log = begun();
  assert.equal(log.say(DOWN), 'done');
  assert.equal(shown(log), 'copying: serving 0,1, hiding by 0,1, coming 0, busy 1, held none');
  finish(log);
  assert.equal(shown(log), 'switching: serving 0,1, hiding by 0,1, coming 0, busy 1, held 1');
  finish(log);
  assert.equal(shown(log), 'serving 0');
  assert.match(log.say(DOWN), /there is one shard only/);
});

test('resharding up that is aborted drops the new shard; down removes the copies, by the ring that stays', () => {
  const log = begun();
  log.propose(UP);
  assert.equal(log.say({ kind: 'abortResharding', collection: 'a' }), 'done');
  assert.equal(shown(log), 'serving 0,1');
  log.propose(DOWN);
  finish(log);
  assert.equal(log.say({ kind: 'abortResharding', collection: 'a' }), 'done');
  assert.equal(shown(log), 'cleaning: serving 0,1, hiding by 0,1, coming 0, busy 0, held none');
  finish(log);
  assert.equal(shown(log), 'serving 0,1');
  assert.match(log.say({ kind: 'abortResharding', collection: 'a' }), /resharding is not in progress/);
});

test('resharding begins, or is refused, in the same words in a state that was read from a snapshot', () => {
  const begin = (isDead: boolean) => {
    const [log, read] = [begun([12, 11]), begun([12, 11])];
    const { uid } = recordOf(log);
    const changes = [12, 11].map((peerId) => ({ collection: 'a', uid, shardId: 1, peerId, from: null, to: 'Dead' as const, term: null }));
    if (isDead) for (const one of [log, read]) one.propose({ kind: 'setReplicaStates', changes });
    read.state = decodeState(encodeState(read.state));
    const said = [log.say(DOWN), read.say(DOWN)];
    assert.equal(said[0], said[1]);
    assert.deepEqual(log.state, read.state);
    return said[0] as string;
  };
  assert.equal(begin(false), 'done');
  assert.match(begin(true), /on peer 11 is Dead/);
});

test('a shard finishes a stage once, in its own term, and only the stage that is agreed on', () => {
  const log = begun();
  log.propose(UP);
  const { startedAt } = recordOf(log).resharding as Resharding;
  const [task] = [11, 12].flatMap((peer) => [...migrationTasks(log.state, peer).values()]);
  assert.ok(task !== undefined);
  const { shardId, term } = task;
  const { leader } = recordOf(log).shards.get(shardId) as ShardRecord;
  const isDone = () => partOf(log.state, task, leader as number)?.isDone;
  assert.equal(isDone(), false);
  const part = { kind: 'finishStage', collection: 'a', startedAt, stage: 'copying', shardId, term } as const;
  assert.match(log.say({ ...part, term: term + 1 }), /has a new leader/);
  assert.match(log.say({ ...part, stage: 'switching' }), /cannot finish the stage: it is over already/);
  assert.match(log.say({ ...part, startedAt: startedAt - 1 }), /cannot finish the stage: it is over already/);
  assert.equal(log.say(part), 'done');
  assert.equal(log.say(part), 'unchanged');
  assert.equal(isDone(), true);
  // Another peer has no part in it, nor has another term.
  assert.equal(partOf(log.state, task, 13), null);
  assert.equal(partOf(log.state, { ...task, term: term + 1 }, leader as number), null);
});

test('resharding is refused while another one, a transfer or a replica that is not Active is in its way, and where keys do not fit', () => {
  const log = begun();
  const { uid } = recordOf(log);
  assert.match(log.say({ ...UP, key: 'k' }), /has no shard keys/);
  assert.match(log.say({ ...UP, placement: [[99]] }), /peer 99/);
  const transfer = { shardId: 0, from: 11, to: 13, toShardId: null };
  log.propose({ kind: 'startTransfer', collection: 'a', transfer, method: 'stream_records', sync: true });
  assert.match(log.say(UP), /shard 0 is being transferred/);
  log.propose({ kind: 'abortTransfer', collection: 'a', transfer, reason: 'test', term: null });
  const dead = { collection: 'a', uid, shardId: 1, peerId: 12, from: null, to: 'Dead', term: null } as const;
  log.propose({ kind: 'setReplicaStates', changes: [dead] });
  assert.match(log.say(DOWN), /the replica of shard 1 on peer 12 is Dead/);
  log.propose({ kind: 'setReplicaStates', changes: [{ ...dead, to: 'Partial' }] });
  const fresh = begun();
  assert.equal(fresh.say(UP), 'done');
  assert.match(fresh.say(DOWN), /being resharded already/);
});

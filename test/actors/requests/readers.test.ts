import assert from 'node:assert/strict';
import { test } from 'node:test';
import { confirmSeen, nothingSeen, quota, setFloors } from '../../../actors/requests/consistency.js';
import { type PortionJob, readPortions } from '../../../actors/requests/readers.js';
import type { ReachedLog } from '../../../cluster/data-messages.js';
import { TroupeError } from '../../../protocols/errors.js';
import { conflict, never, Peers, UID } from './support.js';

const BODY = new Uint8Array();

function jobOf(peers: Peers, shards: readonly number[], more: Partial<PortionJob> = {}): PortionJob {
  return {
    seen: nothingSeen('c', UID, 0),
    shards,
    body: BODY,
    shardMapVersion: UID,
    params: {},
    deadlineMs: peers.world.nowMs + 30_000,
    ...more,
  };
}

const logAt = (index: number): ReachedLog => ({ term: 1, index, held: index });

/** Answers with its own number, and that it is so far on each shard. */
function answering(peers: Peers, peer: number, index = 1): void {
  peers.answers.set(peer, (call) => {
    assert.ok(call.kind === 'read' || call.kind === 'reached');
    const indexes = call.shards.map(() => index);
    if (call.kind === 'reached') return { kind: 'reached', logs: indexes.map(logAt) };
    return { kind: 'answered', body: Uint8Array.of(peer), positions: indexes, usage: null };
  });
}

const peersOf = (answers: readonly Uint8Array[]) => answers.map(([peer]) => peer).sort();

test('each shard is asked for once, this node first, and only Active replicas', async () => {
  const peers = new Peers();
  peers.agree({
    0: { leader: 1, 1: 'Active', 2: 'Active' },
    1: { leader: 2, 1: 'Partial', 2: 'Active' },
    2: { leader: 3, 1: 'Listener', 2: 'Dead', 3: 'Active' },
  });
  for (const peer of [1, 2, 3]) answering(peers, peer);
  assert.deepEqual(peersOf(await readPortions(peers.routes, jobOf(peers, [0, 1, 2]))), [1, 2, 3]);
  assert.deepEqual(peers.asked, ['read 0 of 1', 'read 1 of 2', 'read 2 of 3']);
});

test('when one fails its shards are asked for elsewhere; an error of the request is the answer', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' }, 1: { leader: 2, 2: 'Active', 4: 'Active' } });
  peers.answers.set(2, () => conflict('replicaNotHere', 'not here'));
  for (const peer of [3, 4]) answering(peers, peer);
  assert.deepEqual(peersOf(await peers.outcome(readPortions(peers.routes, jobOf(peers, [0, 1])))), [3, 4]);
  peers.answers.set(2, () => Promise.reject(new TroupeError('wrongInput', 'no such field')));
  await assert.rejects(peers.outcome(readPortions(peers.routes, jobOf(peers, [0, 1]))), { code: 'wrongInput' });
});

test('no shard is left out of an answer when all its Active replicas have been asked and others have become Active meanwhile', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' }, 1: { leader: 2, 2: 'Active', 3: 'Active' } });
  const job = jobOf(peers, [0, 1]);
  for (const shardId of [0, 1]) job.seen.floors.set(shardId, 5);
  // It lags on both, and each peer turns out to have one of them.
  peers.answers.set(2, (call) => {
    assert.ok(call.kind === 'read');
    const index = call.shards.length === 1 ? 5 : 1;
    return { kind: 'answered', body: Uint8Array.of(2), positions: call.shards.map(() => index), usage: null };
  });
  answering(peers, 3, 5);
  const reading = readPortions(peers.routes, job);
  peers.world.ports.timers.after(300, () =>
    peers.agree({ 0: { leader: 3, term: 2, 2: 'Dead', 3: 'Active' }, 1: { leader: 2, 2: 'Active', 3: 'Dead' } }),
  );
  assert.deepEqual(peersOf(await peers.outcome(reading)), [2, 3]);
  assert.deepEqual(peers.asked.slice(-2).sort(), ['read 0 of 3', 'read 1 of 2']);
});

test('a replica that has moved is looked for again until this node has heard where it is', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active' } });
  peers.answers.set(2, () => conflict('replicaNotServing', 'shard 0 serves no reads on this node now'));
  answering(peers, 3);
  const reading = readPortions(peers.routes, jobOf(peers, [0]));
  peers.world.ports.timers.after(300, () => peers.agree({ 0: { leader: 3, term: 2, 3: 'Active' } }));
  assert.deepEqual(peersOf(await peers.outcome(reading)), [3]);
  peers.agree({ 0: { leader: 2, 2: 'Active' } });
  const late = readPortions(peers.routes, jobOf(peers, [0], { deadlineMs: peers.world.nowMs + 400 }));
  await assert.rejects(peers.outcome(late), { code: 'unavailable', message: /serves no reads on this node now/ });
});

test('when one is slow another one is asked, after the delay of the collection', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' } });
  peers.answers.set(2, never);
  answering(peers, 3);
  const startMs = peers.world.nowMs;
  const params = { read_fan_out_delay_ms: 50 };
  assert.deepEqual(peersOf(await peers.outcome(readPortions(peers.routes, jobOf(peers, [0], { params })))), [3]);
  assert.ok(peers.world.nowMs - startMs < 200);
  peers.asked.length = 0;
  await peers.outcome(readPortions(peers.routes, jobOf(peers, [0], { params: { read_fan_out_factor: 1 } })));
  assert.deepEqual(peers.asked, ['read 0 of 2', 'read 0 of 3']);
});

test('a shard without an Active replica, or that nobody answers for, makes the whole read unavailable', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active' }, 1: { leader: null, 2: 'Dead', 3: 'Partial' } });
  answering(peers, 2);
  await assert.rejects(peers.outcome(readPortions(peers.routes, jobOf(peers, [0, 1]))), {
    code: 'unavailable',
    message: /shard 1 of collection c serves no reads: peer 2 is Dead, peer 3 is Partial/,
  });
  peers.answers.clear();
  await assert.rejects(peers.outcome(readPortions(peers.routes, jobOf(peers, [0]))), { code: 'unavailable', message: /no connection/ });
});

test('an answer of a replica that is behind what was seen is not taken', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active' } });
  let index = 4;
  peers.answers.set(2, () => ({ kind: 'answered', body: Uint8Array.of(index), positions: [index++], usage: null }));
  const job = jobOf(peers, [0]);
  job.seen.floors.set(0, 7);
  assert.deepEqual(await peers.outcome(readPortions(peers.routes, job)), [Uint8Array.of(7)]);
  assert.deepEqual([...job.seen.reached], [[0, 7]]);
});

test('as many replicas are asked how far they are as the consistency says', () => {
  const of = (level: Parameters<typeof quota>[0], active: number) => Object.values(quota(level, active));
  assert.deepEqual(
    [of('all', 3), of('majority', 3), of('quorum', 3), of(2, 3), of(9, 3)],
    [
      [3, 3],
      [3, 2],
      [2, 2],
      [2, 2],
      [3, 3],
    ],
  );
  assert.deepEqual(
    [of('majority', 2), of('quorum', 1), of('quorum', 4)],
    [
      [2, 2],
      [1, 1],
      [3, 3],
    ],
  );
});

test('the furthest replica sets what an answer must take in; one that is silent is waited for until it is Dead', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active', 4: 'Active' } });
  answering(peers, 2, 5);
  answering(peers, 3, 8);
  const seen = nothingSeen('c', UID, 0);
  const deadlineMs = peers.world.nowMs + 30_000;
  await peers.outcome(setFloors(peers.routes, seen, [0], 'majority', deadlineMs));
  assert.deepEqual([...seen.floors], [[0, 8]]);
  const all = nothingSeen('c', UID, 0);
  const waiting = setFloors(peers.routes, all, [0], 'all', deadlineMs);
  peers.world.ports.timers.after(1000, () => peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active', 4: 'Dead' } }));
  const startMs = peers.world.nowMs;
  await peers.outcome(waiting);
  assert.ok(peers.world.nowMs - startMs >= 1000);
  assert.deepEqual([...all.floors], [[0, 8]]);
});

test('replicas that never say how far they are end the read with a timeout', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' } });
  answering(peers, 2, 5);
  const waiting = setFloors(peers.routes, nothingSeen('c', UID, 0), [0], 'all', peers.world.nowMs + 500);
  await assert.rejects(peers.outcome(waiting), { code: 'timeout' });
});

/** What has been seen of shard 0: operation 9 of the leader of term 1. */
function seenNine(): ReturnType<typeof nothingSeen> {
  const seen = nothingSeen('c', UID, 0);
  seen.reached.set(0, 9);
  seen.terms.set(0, 1);
  return seen;
}

test('what was read is confirmed once the leader knows that every replica it waits for has it, also one that is about to be Active', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active', 4: 'Partial' } });
  // The leader waits for the Partial replica, which lags.
  const held = [null, 7, 8, 9];
  peers.answers.set(2, () => ({ kind: 'reached', logs: [{ term: 1, index: 12, held: held.shift() ?? null }] }));
  assert.equal(await peers.outcome(confirmSeen(peers.routes, seenNine(), peers.world.nowMs + 30_000)), true);
  assert.deepEqual(held, []);
  assert.ok(peers.asked.every((asked) => asked === 'reached 0 of 2'));
});

test('an index of a later leader confirms nothing: that leader may lack what was read', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, term: 2, 2: 'Active', 3: 'Active' } });
  peers.answers.set(2, () => ({ kind: 'reached', logs: [{ term: 2, index: 2 ** 21, held: 2 ** 21 }] }));
  assert.equal(await peers.outcome(confirmSeen(peers.routes, seenNine(), peers.world.nowMs + 30_000)), false);
});

test('a read of a shard without a leader waits for the next one, and ends with a timeout when none comes', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: null, 2: 'Active', 3: 'Active' } });
  answering(peers, 2, 9);
  const waiting = confirmSeen(peers.routes, seenNine(), peers.world.nowMs + 30_000);
  peers.world.ports.timers.after(1000, () => peers.agree({ 0: { leader: 2, term: 2, 2: 'Active', 3: 'Active' } }));
  assert.equal(await peers.outcome(waiting), true);
  peers.agree({ 0: { leader: null, 2: 'Active' } });
  const late = confirmSeen(peers.routes, seenNine(), peers.world.nowMs + 500);
  await assert.rejects(peers.outcome(late), { code: 'timeout' });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaderWriter } from '../../../actors/requests/leaders.js';
import { type DataCall, LostAnswer } from '../../../cluster/data-messages.js';
import { TroupeError } from '../../../protocols/errors.js';
import { type CallTrace, emptyTrace } from '../../../protocols/model/explanation.js';
import { noUsage } from '../../../protocols/model/usage.js';
import { conflict, Peers, UID } from './support.js';

const WRITTEN = { kind: 'written', numbers: [9], status: 'completed', usage: null } as const;

function writerOf(peers: Peers, timeoutMs = 60_000, trace?: CallTrace): LeaderWriter {
  const explain = { wanted: false, explanation: null, ...(trace === undefined ? {} : { trace }) };
  const request = { path: {}, query: {}, body: null, deadlineMs: peers.world.nowMs + timeoutMs, usage: noUsage(), explain };
  return new LeaderWriter(peers.routes, { collection: 'c', uid: UID, shardMapVersion: UID, operation: 'upsertPoints', request });
}

const part = (shardId: number) => ({ shardId, at: [0], operations: [Uint8Array.of(1)] });

test('a part goes to the leader of its shard, with what is left of the time', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 1: 'Active', 2: 'Active' }, 1: { leader: 1, 1: 'Active', 2: 'Active' } });
  const heard: DataCall[] = [];
  for (const peer of [1, 2]) {
    peers.answers.set(peer, (call) => {
      heard.push(call);
      return WRITTEN;
    });
  }
  const writer = writerOf(peers, 500);
  for (const shardId of [0, 1]) assert.deepEqual(await writer.write(part(shardId), 'applied'), { numbers: [9], status: 'completed' });
  assert.deepEqual(peers.asked, ['write 0 of 2', 'write 1 of 1']);
  const [first] = heard;
  assert.ok(first?.kind === 'write' && first.timeoutMs === 500 && first.until === 'applied' && first.measured);
});

test('a leader tells what a write of a trace went through there, by a clock of its own', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 1: 'Active', 2: 'Active' } });
  const heard: (boolean | undefined)[] = [];
  const hop = { name: 'leader', startUs: 0, endUs: 5, facts: {}, hops: [{ name: 'writer', startUs: 1, endUs: 3, facts: {}, hops: [] }] };
  peers.answers.set(2, (call) => {
    heard.push(call.kind === 'write' ? call.isTraced : undefined);
    return { ...WRITTEN, hop };
  });
  await writerOf(peers).write(part(0), 'applied');
  const trace = emptyTrace();
  await writerOf(peers, 60_000, trace).write(part(0), 'applied');
  assert.deepEqual(heard, [undefined, true]);
  const [shard] = trace.hops;
  const [leader] = shard?.hops ?? [];
  const [writer] = leader?.hops ?? [];
  assert.ok(shard !== undefined && leader !== undefined && writer !== undefined);
  assert.deepEqual([shard.name, leader.name, writer.name], ['shard 0', 'leader', 'writer']);
  assert.ok(leader.startUs > 5 && Math.abs(writer.startUs - leader.startUs - 1) < 0.5 && Math.abs(leader.endUs - leader.startUs - 5) < 0.5);
});

test('a part goes to the own replica without a copy: an engine does not keep the memory of what it is given', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 1, 1: 'Active' } });
  const given = part(0);
  peers.answers.set(1, (call) => {
    assert.ok(call.kind === 'write' && call.operations.every((bytes, at) => bytes === given.operations[at]));
    return WRITTEN;
  });
  assert.deepEqual(await writerOf(peers).write(given, 'applied'), { numbers: [9], status: 'completed' });
});

test('what somebody refuses who does not lead is brought to who does, as soon as that is known', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, term: 1, 2: 'Active', 3: 'Active' } });
  peers.answers.set(2, () => conflict());
  peers.answers.set(3, () => WRITTEN);
  const written = writerOf(peers).write(part(0), 'logged');
  peers.world.ports.timers.after(5, () => peers.agree({ 0: { leader: 3, term: 2, 2: 'Dead', 3: 'Active' } }));
  assert.deepEqual(await peers.outcome(written), { numbers: [9], status: 'completed' });
  assert.deepEqual(peers.asked, ['write 0 of 2', 'write 0 of 3']);
});

test('a leader that cannot be reached is waited for where another one can follow, and told at once where none can', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' }, 1: { leader: 2, 2: 'Active', 3: 'Dead' } });
  peers.answers.set(3, () => WRITTEN);
  await assert.rejects(writerOf(peers).write(part(1), 'logged'), { code: 'unavailable', message: /no connection with peer 2/ });
  const written = writerOf(peers).write(part(0), 'logged');
  peers.world.ports.timers.after(2000, () => peers.agree({ 0: { leader: 3, term: 2, 2: 'Dead', 3: 'Active' } }));
  assert.deepEqual(await peers.outcome(written), { numbers: [9], status: 'completed' });
});

test('what may have been carried out is not tried again, and the client is told so', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' } });
  peers.answers.set(2, () => Promise.reject(new LostAnswer('unavailable', 'the connection with peer 2 was lost')));
  await assert.rejects(peers.outcome(writerOf(peers).write(part(0), 'logged')), {
    code: 'unavailable',
    outcome: 'unknown',
  });
  assert.deepEqual(peers.asked, ['write 0 of 2']);
});

test('a write that a leader leaves open when it goes may have been written, as one whose answer is lost: it is not spread anew', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' } });
  const mayHaveWritten = async (error: Error): Promise<boolean> => {
    peers.answers.set(2, () => Promise.reject(error));
    const writer = writerOf(peers, 300);
    await assert.rejects(peers.outcome(writer.write(part(0), 'logged')));
    return writer.mayHaveWritten();
  };
  assert.equal(await mayHaveWritten(new TroupeError('unavailable', 'the shard’s leader changes', { outcome: 'unknown' })), true);
  assert.equal(await mayHaveWritten(new TroupeError('notFound', 'No point with id 3 found', { reason: 'failedOnApply' })), true);
  assert.equal(await mayHaveWritten(new LostAnswer('timeout', 'no answer')), true);
  assert.equal(await mayHaveWritten(new TroupeError('wrongInput', 'no such vector')), false);
  assert.equal(await mayHaveWritten(new TroupeError('conflict', 'another one leads', { reason: 'notLeader' })), false);
});

test('whether points are there is asked again when the answer is lost: it changes nothing', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' } });
  let lost = 0;
  peers.answers.set(2, ({ kind }) => {
    if (lost++ === 0) throw new LostAnswer('unavailable', 'the connection with peer 2 was lost');
    return kind === 'barrier' ? { kind: 'barrier', index: 9 } : { kind: 'missing', id: 5 };
  });
  assert.equal(await peers.outcome(writerOf(peers).missing(0, [4, 5])), 5);
});

test('that a point is not there is believed of nobody who has been cut off from the others', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, term: 1, 2: 'Active', 3: 'Active' } });
  peers.answers.set(2, ({ kind }) => (kind === 'barrier' ? conflict() : { kind: 'missing', id: 5 }));
  peers.answers.set(3, ({ kind }) => (kind === 'barrier' ? { kind: 'barrier', index: 9 } : { kind: 'missing', id: null }));
  const missing = writerOf(peers).missing(0, [5]);
  peers.world.ports.timers.after(5, () => peers.agree({ 0: { leader: 3, term: 2, 2: 'Dead', 3: 'Active' } }));
  assert.equal(await peers.outcome(missing), null);
  assert.deepEqual(peers.asked, ['missing 0 of 2', 'barrier 0 of 2', 'barrier 0 of 3', 'missing 0 of 3']);
});

test('errors of the leader are the answer; without one in time, why not', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active' }, 1: { leader: null, 2: 'Dead', 3: 'Partial' }, 2: { leader: null, 2: 'Initializing' } });
  peers.answers.set(2, () => Promise.reject(new TroupeError('wrongInput', 'no such vector')));
  await assert.rejects(writerOf(peers).write(part(0), 'logged'), { code: 'wrongInput' });
  assert.throws(() => writerOf(peers).check(1), { code: 'unavailable', message: /peer 2 is Dead, peer 3 is Partial/ });
  writerOf(peers).check(2);
  const late = writerOf(peers, 300).write(part(2), 'logged');
  await assert.rejects(peers.outcome(late), { code: 'unavailable', message: /peer 2 is Initializing/ });
});

test('a shard without as many active replicas as write_consistency_factor asks for is found before any shard has its part', () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Dead' }, 1: { leader: 2, 2: 'Active', 3: 'Active' } }, 2);
  const writer = writerOf(peers);
  writer.check(1);
  assert.throws(() => writer.check(0), { code: 'unavailable', message: /shard 0 has 1 of the 2 active replicas .*: nothing was written/ });
});

test('a leader that can take nothing more for a while is asked again, and the client hears of it only when that goes on', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' } });
  const busy = () => Promise.reject(new TroupeError('busy', 'a replica of the shard is too far behind'));
  peers.answers.set(2, busy);
  const written = writerOf(peers).write(part(0), 'logged');
  peers.world.ports.timers.after(2500, () => peers.answers.set(2, () => WRITTEN));
  assert.deepEqual(await peers.outcome(written), { numbers: [9], status: 'completed' });
  peers.answers.set(2, busy);
  await assert.rejects(peers.outcome(writerOf(peers).write(part(0), 'logged')), { code: 'busy' });
});

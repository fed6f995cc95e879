import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CopyRoom } from '../../../actors/context/copy-room.js';
import { MemoryRoom } from '../../../actors/context/memory-room.js';
import { callOwnReplica } from '../../../actors/shard-log/own-replica.js';
import { TroupeError } from '../../../protocols/errors.js';
import { NO_TAG } from '../../../protocols/model/shard-log.js';
import type { UpdateOperation } from '../../../protocols/model/update.js';
import { encodeUpdate, NOTHING } from '../../../protocols/update-codec.js';
import { byIds, upsert } from '../../storage/replica/support.js';

const FULL = new TroupeError('outOfDisk', 'full');
const ROOMY = { committedBytes: () => 0, copyBytesMax: 1000 };
const entry = (operation: UpdateOperation) => ({ tag: NO_TAG, operation: encodeUpdate({ operation, chained: false }) });
const DELETION = entry({ kind: 'deletePoints', selector: byIds(1) });
const UPSERT = entry(upsert([{ id: 1, seed: 1 }]));
const BARRIER = { tag: NO_TAG, operation: encodeUpdate(NOTHING) };

test('without room on the disk, a copy takes entries that only remove something, and refuses all others', () => {
  const room = new CopyRoom({ refuseCopy: () => FULL }, { ...ROOMY, copyBytesMax: Number.POSITIVE_INFINITY });
  room.requireForEntries([]);
  room.requireForEntries([DELETION, DELETION]);
  assert.throws(() => room.requireForEntries([DELETION, UPSERT]), { code: 'outOfDisk' });
  assert.throws(() => room.require(1), { code: 'outOfDisk' });
});

test('with room, a copy takes everything, and the disk hears how much', () => {
  const asked: number[] = [];
  const disk = {
    refuseCopy: (bytes: number) => {
      asked.push(bytes);
      return null;
    },
  };
  const room = new CopyRoom(disk, { ...ROOMY, copyBytesMax: Number.POSITIVE_INFINITY });
  room.requireForEntries([UPSERT, BARRIER]);
  room.require(77);
  assert.deepEqual(asked, [UPSERT.operation.length + BARRIER.operation.length, 77]);
});

test('copies are taken beyond the memory at which clients are refused, and not up to the end of the budget', () => {
  let used = 0;
  const memory = new MemoryRoom({ budgetBytes: 1000, usedBytes: () => used, noteHeld: () => {} });
  const room = new CopyRoom(null, memory);
  used = 860;
  assert.equal(memory.takesPoints(0), false);
  room.require(50);
  used = 920;
  assert.throws(() => room.require(50), { code: 'outOfMemory' });
});

test('a follower without room carries out nothing of what it refuses, and goes on with questions and what removes', async () => {
  const calls: string[] = [];
  const engine = new Proxy({} as Parameters<typeof callOwnReplica>[0], {
    get: (_, name) => async () => {
      calls.push(String(name));
      return name === 'position' ? { last: NO_TAG, base: NO_TAG } : NO_TAG;
    },
  });
  const room = new CopyRoom({ refuseCopy: () => FULL }, { ...ROOMY, copyBytesMax: Number.POSITIVE_INFINITY });
  const call = (asked: Parameters<typeof callOwnReplica>[3]) => callOwnReplica(engine, room, 'c/0', asked);
  const to = { shard: { collection: 'c', uid: 1, shardId: 0 }, term: 1 };
  const append = { ...to, kind: 'append', leader: 7, previous: NO_TAG, until: 'logged' } as const;
  await assert.rejects(call({ ...append, entries: [UPSERT] }), { code: 'outOfDisk' });
  await assert.rejects(call({ ...to, kind: 'replaceBuckets', bytes: new Uint8Array(10) }), { code: 'outOfDisk' });
  assert.deepEqual(calls, []);
  await call({ ...append, entries: [DELETION] });
  await call({ ...to, kind: 'position' });
  assert.deepEqual(calls, ['append', 'position']);
});

test('an archive that is uploaded takes room of the disk and none of the memory', () => {
  const full = { committedBytes: () => 1000, copyBytesMax: 1000 };
  new CopyRoom({ refuseCopy: () => null }, full).requireOnDisk(1e9);
  assert.throws(() => new CopyRoom({ refuseCopy: () => null }, full).require(1), { code: 'outOfMemory' });
  assert.throws(() => new CopyRoom({ refuseCopy: () => FULL }, ROOMY).requireOnDisk(1), { code: 'outOfDisk' });
});

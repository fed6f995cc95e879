import assert from 'node:assert/strict';
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { openCollectionStore } from '../../../../actors/collection/store.js';
import { CopyRoom } from '../../../../actors/context/copy-room.js';
import { MemoryRoom } from '../../../../actors/context/memory-room.js';
import type { NodeServices } from '../../../../actors/context/services.js';
import type { CollectionEntry } from '../../../../actors/context/view.js';
import type { ReplicaMessage } from '../../../../actors/replica/messages.js';
import type { Assignment } from '../../../../actors/shard-log/assignments.js';
import { discardFiles, type FileCall, receiveFiles } from '../../../../actors/transfers/run/receive-files.js';
import { sendFiles } from '../../../../actors/transfers/run/send-files.js';
import type { DataAnswer } from '../../../../cluster/data-messages.js';
import { reasonOf, TroupeError as Thrown, type TroupeError } from '../../../../protocols/errors.js';
import type { ReplicaState } from '../../../../protocols/model/cluster.js';
import type { ReplicaStats } from '../../../../storage/threads/messages.js';
import { transferOf } from '../../../cluster/transfer/support.js';
import { sampleStats } from '../../samples.js';

const RUN = {
  collection: 'cities',
  uid: 5,
  term: 3,
  transfer: transferOf({ method: 'snapshot' }),
  target: 'PartialSnapshot',
  handsOver: false,
} as const;
const LARGE = Uint8Array.from({ length: 5 * 2 ** 20 + 7 }, (_, at) => (at * 7) % 251);
const FILES: Readonly<Record<string, Uint8Array>> = {
  'lmdb/data.mdb': LARGE,
  'segments/3/vectors': Uint8Array.of(1, 2, 3),
  'wal-empty': new Uint8Array(0),
};

/** A target in a folder of its own, whose replica is exchanged as the real one is, without an engine. */
async function target(state: ReplicaState = 'PartialSnapshot') {
  const root = await mkdtemp(join(tmpdir(), 'troupe-files-'));
  const store = await openCollectionStore(root, () => {});
  await mkdir(join(store.path('cities'), '0'), { recursive: true });
  await writeFile(join(store.path('cities'), '0', 'old'), 'old');
  const assignment: Assignment = {
    leader: 1,
    term: 3,
    replicas: new Map<number, ReplicaState>([
      [1, 'Active'],
      [2, state],
    ]),
    writeFactor: 1,
    since: new Map([[2, 4]]),
    transfers: [RUN.transfer],
  };
  const copyRoom = new CopyRoom(null, new MemoryRoom(null));
  const services = { store, copyRoom, assignments: { peerId: 2, of: () => assignment } } as unknown as NodeServices;
  const installed: string[] = [];
  const during = { install: async () => {} };
  const actor = {
    ask: async (make: (replyTo: number) => ReplicaMessage) => {
      const message = make(0);
      assert.equal(message.kind, 'install');
      if (message.kind !== 'install') return false;
      installed.push(message.staged);
      await during.install();
      await store.exchangeShard('cities', 0, message.staged);
      return true;
    },
  };
  const belonging = { shards: [0], since: [4] };
  const entry = { name: 'cities', folder: 'cities', belonging, replicas: new Map([[0, { actor }]]) } as unknown as CollectionEntry;
  const answer = (call: FileCall) => receiveFiles(services, entry, call);
  return { root, store, services, installed, during, answer, replica: join(store.path('cities'), '0') };
}

function leader(
  store: Awaited<ReturnType<typeof target>>['store'],
  answer: (call: FileCall) => Promise<DataAnswer>,
  refusal?: TroupeError,
) {
  let released = 0;
  let stats: ReplicaStats | null = null;
  const engine = {
    checkpoint: async (_key: string, folder: string) => {
      if (refusal !== undefined) throw refusal;
      for (const [path, bytes] of Object.entries(FILES)) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        // A linked file may grow while it is sent.
        await writeFile(join(folder, path), Buffer.concat([bytes, Buffer.from('more')]));
      }
      const files = Object.entries(FILES).map(([path, bytes]) => ({ path, bytes: bytes.length }));
      return { at: { peer: 1, term: 3, index: 9 }, timeMs: null, folder, files };
    },
    releaseCheckpoint: async () => {
      released += 1;
    },
    stats: () => stats,
  };
  const calls = { call: (_peer: number, call: unknown) => answer(call as FileCall) };
  const sent: number[] = [];
  const send = () => sendFiles({ engine, calls, store }, 'cities/0', RUN, (bytes) => sent.push(bytes), new AbortController().signal);
  const loseCheckpoint = () => {
    stats = sampleStats([], { key: 'cities/0', lostCheckpoint: true });
  };
  return { send, sent, released: () => released, loseCheckpoint };
}

test('files arrive as they were when the checkpoint was made and take the place of all that was there', async (t) => {
  const { answer, replica, root, store } = await target();
  t.after(() => rm(root, { recursive: true, force: true }));
  const { released, send, sent } = leader(store, answer);
  await send();
  for (const [path, bytes] of Object.entries(FILES)) assert.deepEqual(new Uint8Array(await readFile(join(replica, path))), bytes);
  await assert.rejects(readFile(join(replica, 'old')));
  assert.equal(sent.at(-1), LARGE.length + 3);
  assert.equal(released(), 1);
});

test('the checkpoint is let go of when the target fails, and what has arrived is removed when nobody waits for it', async (t) => {
  const { answer, installed, root, services, store } = await target();
  t.after(() => rm(root, { recursive: true, force: true }));
  let parts = 0;
  const { released, send } = leader(store, (call) => {
    parts += 1;
    return parts > 2 ? Promise.reject(new Thrown('unavailable', 'gone')) : answer(call);
  });
  await assert.rejects(send(), /gone/);
  assert.equal(released(), 1);
  assert.equal(installed.length, 0);
  const staged = join(store.staging('transfer-5-0-10'), 'lmdb/data.mdb');
  assert.ok((await readFile(staged)).length > 0);
  await discardFiles(services, { collection: 'cities', uid: 5, shardId: 0, startedAt: 10 });
  await assert.rejects(readFile(staged));
});

test('files are not sent any more once the log has lost what they need: the transfer is told so, and the checkpoint let go of', async (t) => {
  const { answer, installed, root, store } = await target();
  t.after(() => rm(root, { recursive: true, force: true }));
  let parts = 0;
  const { loseCheckpoint, released, send } = leader(store, (call) => {
    parts += 1;
    if (parts === 2) loseCheckpoint();
    return answer(call);
  });
  await assert.rejects(send(), (error) => reasonOf(error) === 'checkpointLost');
  assert.deepEqual([parts, released(), installed.length], [2, 1, 0]);
});

test('files that did not arrive whole are not installed', async (t) => {
  const { answer, installed, root, store } = await target();
  t.after(() => rm(root, { recursive: true, force: true }));
  const { send } = leader(store, (call) =>
    call.kind === 'putFile' && call.offset > 0 ? Promise.resolve({ kind: 'done', changed: 0 }) : answer(call),
  );
  await assert.rejects(send(), (error: TroupeError) => error.code === 'storage');
  assert.equal(installed.length, 0);
});

test('a replica takes files when it is agreed to wait for those of this transfer in this term, and never else', async (t) => {
  const waiting = await target();
  const serving = await target('Active');
  t.after(() => Promise.all([waiting, serving].map(({ root }) => rm(root, { recursive: true, force: true }))));
  const shard = { collection: 'cities', uid: 5, shardId: 0 };
  const part = { kind: 'putFile', shard, term: 3, startedAt: 10, path: 'a', offset: 0, bytes: Uint8Array.of(1) } as const;
  const isConflict = (error: TroupeError) => error.code === 'conflict';
  await waiting.answer(part);
  await assert.rejects(waiting.answer({ ...part, term: 4 }), isConflict);
  await assert.rejects(waiting.answer({ ...part, startedAt: 11 }), isConflict);
  await assert.rejects(serving.answer(part), isConflict);
  for (const path of ['../a', 'a/../../b', '/etc/a', '', 'a//b', '.', 'a/.']) {
    await assert.rejects(waiting.answer({ ...part, path }), (error: TroupeError) => error.code === 'wrongInput', path);
  }
});

test('a transfer that may have no checkpoint, as another one has it, leaves that one alone', async (t) => {
  const { answer, root, store } = await target();
  t.after(() => rm(root, { recursive: true, force: true }));
  const { released, send } = leader(store, answer, new Thrown('conflict', 'another checkpoint of the replica has not been released yet'));
  await assert.rejects(send(), /another checkpoint/);
  assert.equal(released(), 0);
});

test('files that are being installed are out of reach of the parts that a later try sends', async (t) => {
  const { answer, during, replica, root, store } = await target();
  t.after(() => rm(root, { recursive: true, force: true }));
  const shard = { collection: 'cities', uid: 5, shardId: 0 };
  during.install = async () => {
    await answer({ kind: 'putFile', shard, term: 3, startedAt: 10, path: 'wal-empty', offset: 0, bytes: Uint8Array.of(9) });
  };
  await leader(store, answer).send();
  assert.equal((await readFile(join(replica, 'wal-empty'))).length, 0);
});

test('a file that is sent anew is another file: a part of the earlier one that is still being written is none of it', async (t) => {
  const { answer, root, store } = await target();
  t.after(() => rm(root, { recursive: true, force: true }));
  const shard = { collection: 'cities', uid: 5, shardId: 0 };
  const part = { kind: 'putFile', shard, term: 3, startedAt: 10, path: 'a', offset: 0, bytes: Uint8Array.of(1, 2) } as const;
  await answer(part);
  const staged = join(store.staging('transfer-5-0-10'), 'a');
  const earlier = await open(staged, 'r+');
  await answer({ ...part, bytes: Uint8Array.of(3, 4) });
  await earlier.write(Uint8Array.of(9), 0, 1, 1);
  await earlier.close();
  assert.deepEqual([...(await readFile(staged))], [3, 4]);
});

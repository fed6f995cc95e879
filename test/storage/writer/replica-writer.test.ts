import assert from 'node:assert/strict';
import fs from 'node:fs';
import { mock, type TestContext, test } from 'node:test';
import { outcomeOf, TroupeError } from '../../../protocols/errors.js';
import { BrokenInvariant } from '../../../protocols/invariant.js';
import { encodeUpdate } from '../../../protocols/update-codec.js';
import { DamagedFile } from '../../../storage/disk/file.js';
import { memoryBudget } from '../../../storage/memory/budget.js';
import { HeldValues } from '../../../storage/memory/held-memory.js';
import { Ledger, SharedLedger } from '../../../storage/memory/shared-ledger.js';
import { type SeenScan, SeenScans } from '../../../storage/reader/seen-scans.js';
import { FILE_LOOK_EVERY_MS } from '../../../storage/replica/database-file.js';
import { Operations } from '../../../storage/replica/operations.js';
import { ReplicaStore } from '../../../storage/replica/store.js';
import type { FromWriter, ToWriter } from '../../../storage/threads/messages.js';
import { LogKeeping } from '../../../storage/writer/log-keeping.js';
import { ReplicaWriter, type WriterPort } from '../../../storage/writer/replica-writer.js';
import { addFreePages, FREED_RECORDS } from '../replica/free-pages.js';
import { byIds, specOf, temporaryFolder } from '../replica/support.js';
import { ALONE } from '../write.js';
import { UNLIMITED_LOGS } from './logs.js';

const MB = 1 << 20;
const KEY = 'test/0';
const OPERATION = encodeUpdate({ operation: { kind: 'deletePoints', selector: byIds(1) }, chained: false });

/** A writer with an open replica, in this thread; what it says, and whether it ended its worker. */
async function opened(
  t: TestContext,
  after: WriterPort['after'] = (ms, run) => setTimeout(run, ms).unref(),
  pages: WriterPort['pages'] = null,
) {
  const said: FromWriter[] = [];
  const ended: BrokenInvariant[] = [];
  const scans: SeenScan[] = [];
  const collected: number[] = [];
  const warned: string[] = [];
  const unmapping = { files: [] as string[], fails: false };
  const memory = new SharedLedger(memoryBudget(100 * MB, null));
  const own = new Ledger(memory.shareOf('writer-0'));
  const writer = new ReplicaWriter(
    KEY,
    {
      post: (message) => said.push(message),
      pack: (_owner, set) => set,
      now: () => Date.now(),
      dateMs: () => Date.now(),
      later: (run) => setImmediate(run),
      between: (run) => setImmediate(run),
      beginSlice: () => () => false,
      beginPortion: () => () => false,
      after,
      end: (error) => ended.push(error),
      warn: (message) => warned.push(message),
      collectGarbageSoon: () => collected.push(Date.now()),
      emptyMemory: null,
      unmapPages: (file) => {
        unmapping.files.push(file);
        if (unmapping.fails) throw new Error('no such pages');
      },
      pages,
      left: () => {},
      heldValues: () => new HeldValues(own),
      logs: new LogKeeping(UNLIMITED_LOGS, { now: () => Date.now(), after }),
      scans: new SeenScans((some) => scans.push(...some), Date.now, setImmediate),
    },
    () => {},
  );
  const spec = specOf(temporaryFolder(t));
  const take = async (message: ToWriter) => {
    const before = said.length;
    writer.push(message);
    for (let turn = 0; turn < 200 && said.length === before && ended.length === 0; turn++) await new Promise((done) => setTimeout(done, 5));
    return said.slice(before).filter(({ kind }) => kind !== 'stats');
  };
  const [, answer] = [await take({ kind: 'open', id: 1, spec, damaged: null, opening: 1 }), said.at(-1)];
  assert.ok(answer !== undefined);
  return { take, ended, said, scans, collected, warned, unmapping, spec, memory };
}

const write = (id: number): ToWriter =>
  ({
    kind: 'write',
    id,
    key: KEY,
    as: ALONE,
    write: { operations: [OPERATION], until: 'applied', deadlineMs: Date.now() + 5000 },
  }) as ToWriter;

test('a deletion by a filter on a field without an index is counted with the payloads that were read for it', async (t) => {
  const { scans, take } = await opened(t);
  const send = async (id: number, operation: 'upsertPoints' | 'deletePoints', body: object) => {
    const undecoded = { operation, path: {} };
    const operations = [new TextEncoder().encode(JSON.stringify(body))];
    const own = { operations, undecoded, until: 'applied', deadlineMs: Date.now() + 5000 };
    const [answer] = await take({ kind: 'write', id, key: KEY, as: ALONE, write: own } as ToWriter);
    assert.equal(answer?.kind, 'answer');
  };
  const points = Array.from({ length: 100 }, (_, id) => ({ id, vector: [1, 0, 0, 0], payload: { color: id < 30 ? 'red' : 'blue' } }));
  await send(7, 'upsertPoints', { points });
  await send(8, 'deletePoints', { filter: { must: [{ key: 'color', match: { value: 'red' } }] } });
  await new Promise((done) => setImmediate(done));
  const [scan, ...others] = scans.map(({ milliseconds: _, ...facts }) => facts);
  assert.deepEqual([scan, others], [{ collection: 'test', field: 'color', type: 'keyword', reads: 1, rows: 100 }, []]);
});

test('the pages of the database are let go of when a build begins, which goes on where that fails', async (t) => {
  const { spec, take, unmapping, warned } = await opened(t);
  await take(write(7));
  unmapping.fails = true;
  const before = unmapping.files.length;
  const [answer] = await take({ kind: 'beginBuild', id: 8, key: KEY, segments: [1], results: 1 } as unknown as ToWriter);
  assert.equal(answer?.kind, 'answer');
  assert.equal(unmapping.files.length, before + 1);
  assert.ok(unmapping.files.at(-1)?.startsWith(spec.folder));
  assert.ok(warned.at(-1)?.includes('no such pages'));
});

test('a large write is not decoded beside a large read of another thread, for which a small container has no memory', async (t) => {
  const { memory, take } = await opened(t);
  const send = async (points: object[]) => {
    const operations = [Buffer.from(JSON.stringify({ points }))];
    const undecoded = { operation: 'upsertPoints', path: {} };
    const own = { operations, undecoded, until: 'applied', deadlineMs: Date.now() + 5000 };
    const [answer] = await take({ kind: 'write', id: 7, key: KEY, as: ALONE, write: own } as unknown as ToWriter);
    return answer?.kind === 'error' ? answer.error.code : answer?.kind;
  };
  const small = [{ id: 1, vector: [1, 0, 0, 0] }];
  const large = [{ id: 1, vector: [1, 0, 0, 0], payload: { text: 'x'.repeat(2 * MB) } }];
  assert.ok(memory.reserve('values', 19 * MB));
  assert.equal(await send(large), 'outOfMemory');
  assert.equal(await send(small), 'answer');
  memory.release('values', 19 * MB);
  assert.equal(await send(large), 'answer');
  await new Promise((done) => setImmediate(done));
  assert.equal(memory.held().size, 0);
});

for (const [what, message] of [
  ['a write', write(7)],
  ['a question for the replica', { kind: 'missing', id: 7, key: KEY, ids: [1] }],
] as readonly (readonly [string, ToWriter])[]) {
  test(`a broken invariant in ${what} ends the worker, and is told to nobody as a fault of the request`, async (t) => {
    const { ended, take } = await opened(t);
    const mocked = mock.method(Operations.prototype, 'applying', () => {
      throw new BrokenInvariant('Wal-W2', 'out of order');
    });
    t.after(() => mocked.mock.restore());
    assert.deepEqual(await take(message), []);
    assert.deepEqual(
      ended.map(({ id }) => id),
      ['Wal-W2'],
    );
  });
}

test('what an opening has loaded that failed is freed: the next try loads it again', async (t) => {
  const { collected, spec, take } = await opened(t);
  await take({ kind: 'close', id: 2, key: KEY, frees: false, why: 'asked' });
  assert.deepEqual(collected, []);
  const [refused] = await take({ kind: 'open', id: 3, spec, damaged: 'it is damaged', opening: 2 });
  assert.equal(refused?.kind, 'error');
  assert.equal(collected.length, 1);
});

test('originals that arrive later do so some seconds after the opening, and a close waits until nothing is read for them', async (t) => {
  const later: (() => void)[] = [];
  const happened: string[] = [];
  const { close } = ReplicaStore.prototype;
  const mocked = [
    mock.getter(ReplicaStore.prototype, 'awaitsOriginals', () => true),
    mock.method(ReplicaStore.prototype, 'bringOriginals', async (pause: () => Promise<void>) => {
      happened.push('begun');
      await pause().finally(() => happened.push('ended'));
    }),
    mock.method(ReplicaStore.prototype, 'close', function (this: ReplicaStore, ...how: Parameters<typeof close>) {
      happened.push('closed');
      return close.apply(this, how);
    }),
  ];
  t.after(() => {
    for (const { mock: one } of mocked) one.restore();
  });
  const { said, take } = await opened(t, (_ms, run) => later.push(run));
  assert.deepEqual(happened, []);
  for (const run of later.splice(0)) run();
  assert.deepEqual(happened, ['begun']);
  const closing = take({ kind: 'close', id: 2, key: KEY, frees: false, why: 'asked' });
  while (later.length === 0) await new Promise((done) => setImmediate(done));
  for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
  assert.deepEqual(happened, ['begun'], 'the files are still read');
  for (const run of later.splice(0)) run();
  assert.equal((await closing)[0]?.kind, 'answer');
  assert.deepEqual(happened, ['begun', 'ended', 'closed']);
  assert.ok(!said.some(({ kind }) => kind === 'failed'));
});

test('originals are put in their place at the opening, and what is read of them is let go of every second until none are there or the replica is closed', async (t) => {
  const later: { readonly ms: number; readonly run: () => void }[] = [];
  const answers = [true, true, false];
  let calls = 0;
  const mocked = mock.method(ReplicaStore.prototype, 'tendOriginals', () => answers[calls++] as boolean);
  t.after(() => mocked.mock.restore());
  const pages = { put: () => false, letGo: () => {} };
  const second = () => {
    const [next] = later.splice(0);
    assert.equal(next?.ms, 1000);
    next?.run();
  };
  const after: WriterPort['after'] = (ms, run) => {
    // The file of the database is looked at, too.
    if (ms !== FILE_LOOK_EVERY_MS) later.push({ ms, run });
  };
  const { take } = await opened(t, after, pages);
  assert.equal(calls, 1);
  second();
  second();
  assert.equal(calls, 3);
  assert.equal(later.length, 0);
  answers.push(true);
  const { take: close } = await opened(t, after, pages);
  assert.equal(calls, 4);
  await close({ kind: 'close', id: 2, key: KEY, frees: false, why: 'asked' });
  second();
  assert.equal(calls, 4);
  assert.equal(later.length, 0);
  await take({ kind: 'close', id: 2, key: KEY, frees: false, why: 'asked' });
});

test('vectors that were not verified at the opening are right after it, before they are put in their place; damage makes the replica Dead', async (t) => {
  for (const error of [null, new DamagedFile('vectors.0', 'checksum does not match')]) {
    const happened: string[] = [];
    const mocked = [
      mock.getter(ReplicaStore.prototype, 'awaitsVerifying', () => true),
      mock.method(ReplicaStore.prototype, 'verifyFiles', async (pause: () => Promise<void>) => {
        await pause();
        happened.push('verified');
        if (error !== null) throw error;
        return [];
      }),
      mock.method(ReplicaStore.prototype, 'tendOriginals', () => {
        happened.push('placed');
        return false;
      }),
    ];
    const { said } = await opened(t, (_ms, run) => setImmediate(run), { put: () => false, letGo: () => {} });
    for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
    for (const { mock: one } of mocked) one.restore();
    const failed = said.flatMap((message) => (message.kind === 'failed' ? [message.error.detail] : []));
    assert.deepEqual([happened, failed], error === null ? [['verified', 'placed'], []] : [['verified'], [error.detail]]);
  }
});

test('codes that are found damaged after the opening are told of, as something to be built again, and the replica goes on', async (t) => {
  const damage = 'codes.0: checksum does not match';
  const mocked = [
    mock.getter(ReplicaStore.prototype, 'awaitsVerifying', () => true),
    mock.method(ReplicaStore.prototype, 'verifyFiles', async () => [damage]),
  ];
  const { said, warned } = await opened(t, (_ms, run) => setImmediate(run), { put: () => false, letGo: () => {} });
  for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
  for (const { mock: one } of mocked) one.restore();
  assert.ok(
    warned.some((message) => message.includes(damage) && message.endsWith('it is built again')),
    warned.join('; '),
  );
  assert.deepEqual(
    said.map(({ kind }) => kind),
    ['publish', 'published', 'answer', 'stats'],
  );
});

test('a replica whose vectors are damaged on their way to memory is given up with the name of the file; where they cannot be read, they stay there', async (t) => {
  const errors = [new TroupeError('storage', 'vectors.0: cannot be read (EIO)'), new DamagedFile('vectors.0', 'checksum does not match')];
  const mocked = [
    mock.getter(ReplicaStore.prototype, 'awaitsOriginals', () => true),
    mock.method(ReplicaStore.prototype, 'bringOriginals', () => Promise.reject(errors.shift())),
  ];
  t.after(() => {
    for (const { mock: one } of mocked) one.restore();
  });
  for (const failed of [[], ['vectors.0: checksum does not match']]) {
    const { said } = await opened(t, (_ms, run) => setImmediate(run));
    for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
    assert.deepEqual(
      said.flatMap((message) => (message.kind === 'failed' ? [message.error.detail] : [])),
      failed,
    );
  }
});

test('what is logged and cannot be applied is tried again without a request, and no write is logged behind it', async (t) => {
  const { take } = await opened(t);
  let lacking = true;
  let tries = 0;
  const { applying } = Operations.prototype;
  const mocked = mock.method(Operations.prototype, 'applying', function (this: Operations, ...numbered: Parameters<typeof applying>) {
    if (this.waiting > 0) tries++;
    if (lacking) throw new TroupeError('storage', 'payload: cannot be opened (EMFILE)');
    return applying.apply(this, numbered);
  });
  t.after(() => mocked.mock.restore());
  const logged = { ...write(7), write: { operations: [OPERATION], until: 'logged', deadlineMs: Date.now() + 5000 } } as ToWriter;
  assert.deepEqual(
    (await take(logged)).map(({ kind }) => kind),
    ['answer'],
  );
  const [refused] = await take(write(8));
  assert.ok(refused?.kind === 'error');
  assert.equal(refused.error.code, 'unavailable');
  assert.equal(outcomeOf(refused.error), 'none');
  const before = tries;
  while (tries === before) await new Promise((done) => setTimeout(done, 5));
  lacking = false;
  assert.equal((await take(write(9)))[0]?.kind, 'answer');
});

test('a replica whose log cannot be applied for long is given up with the reason', async (t) => {
  const { said, take } = await opened(t, (_ms, run) => setImmediate(run));
  const mocked = mock.method(Operations.prototype, 'applying', () => {
    throw new TroupeError('storage', 'payload: cannot be opened (EMFILE)');
  });
  t.after(() => mocked.mock.restore());
  const logged = { ...write(7), write: { operations: [OPERATION], until: 'logged', deadlineMs: Date.now() + 5000 } } as ToWriter;
  await take(logged);
  while (!said.some(({ kind }) => kind === 'failed')) await new Promise((done) => setImmediate(done));
  const failed = said.filter((message) => message.kind === 'failed');
  assert.deepEqual(
    failed.map(({ error }) => error.detail),
    ['payload: cannot be opened (EMFILE)'],
  );
});

test('a replica that is not sure to keep its smaller file is given up with the reason, and has everything when it is opened again', {
  timeout: 20_000,
}, async (t) => {
  const stores: ReplicaStore[] = [];
  const open = ReplicaStore.open.bind(ReplicaStore);
  t.mock.method(ReplicaStore, 'open', async (...given: Parameters<typeof open>) => {
    const store = await open(...given);
    stores.push(store);
    return store;
  });
  const { ended, said, spec, take } = await opened(t, (_ms, run) => setImmediate(run));
  addFreePages({ store: stores[0] as ReplicaStore }, FREED_RECORDS);
  const sync = fs.fsyncSync;
  const { ino } = fs.statSync(`${spec.folder}/lmdb`);
  const failing = t.mock.method(fs, 'fsyncSync', (file: number) => {
    if (fs.fstatSync(file).ino === ino) throw new Error('EIO: i/o error, fsync');
    sync(file);
  });
  // After a write the file is looked at until there is a smaller one.
  assert.equal((await take(write(7)))[0]?.kind, 'answer');
  while (!said.some(({ kind }) => kind === 'failed')) await new Promise((done) => setImmediate(done));
  const reasons = said.flatMap((message) => (message.kind === 'failed' ? [message.error.detail] : []));
  assert.deepEqual([reasons.length, ended], [1, []]);
  assert.match(reasons[0] as string, /takes no more writes until it is opened again: .* its smaller file stays in its place: EIO/);
  const [refused] = await take(write(8));
  assert.ok(refused?.kind === 'error' && refused.error.detail === reasons[0], JSON.stringify(refused));
  await take({ kind: 'close', id: 9, key: KEY, frees: false, why: 'asked' });
  failing.mock.restore();
  await take({ kind: 'open', id: 10, spec, damaged: null, opening: 2 });
  assert.equal(stores[1]?.log.position.last.index, 1);
  assert.equal((await take(write(11)))[0]?.kind, 'answer');
});

for (const until of ['logged', 'applied'] as const) {
  test(`a replica that meets damage while it applies what is to be ${until} is given up at once, with the reason`, async (t) => {
    let pauses = 0;
    const { said, take } = await opened(t, (ms, run) => {
      // The file of the database is looked at, too.
      if (ms === FILE_LOOK_EVERY_MS) return;
      pauses += 1;
      setImmediate(run);
    });
    const mocked = mock.method(Operations.prototype, 'applying', () => {
      throw new TroupeError('storage', 'record `payload/3` is damaged', { reason: 'damaged' });
    });
    t.after(() => mocked.mock.restore());
    await take({ ...write(7), write: { operations: [OPERATION], until, deadlineMs: Date.now() + 5000 } } as ToWriter);
    while (!said.some(({ kind }) => kind === 'failed')) await new Promise((done) => setImmediate(done));
    const reasons = said.flatMap((message) => (message.kind === 'failed' ? [message.error.reason] : []));
    assert.deepEqual([reasons, pauses], [['damaged'], until === 'logged' ? 1 : 0]);
  });
}

test('an expected failure is told to whoever asked, and the worker goes on', async (t) => {
  const { ended, take } = await opened(t);
  const late = { ...write(7), write: { operations: [OPERATION], until: 'applied', deadlineMs: 1 } } as ToWriter;
  assert.deepEqual(
    (await take(late)).map(({ kind }) => kind),
    ['error'],
  );
  assert.deepEqual(ended, []);
});

test('a bug that ends the decoding of a request is told with the fact that nothing of it is done', async (t) => {
  const { ended, take } = await opened(t);
  const undecoded = { operation: 'unheardOf', path: {} };
  const broken = { ...write(7), write: { operations: [OPERATION], until: 'applied', deadlineMs: Date.now() + 5000, undecoded } };
  const [said] = await take(broken as never);
  assert.ok(said?.kind === 'error');
  assert.equal(outcomeOf(said.error), 'none');
  assert.deepEqual(ended, []);
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { parseJson } from '../../../protocols/json.js';
import type { TimedWrite } from '../../../protocols/model/shard-log.js';
import type { UndecodedUpdate, UpdateOperation, WriteOperation } from '../../../protocols/model/update.js';
import { encodeUpdate } from '../../../protocols/update-codec.js';
import { updateAnswer } from '../../../storage/answers/update-answer.js';
import { unlimitedLedger } from '../../../storage/memory/shared-ledger.js';
import type { SegmentHandle, SegmentSet } from '../../../storage/segment/handle.js';
import { residentOffset, type VectorLayout } from '../../../storage/segment/layout.js';
import type { FromWriter, ReplicaStats, ToWriter, WrittenTags } from '../../../storage/threads/messages.js';
import { SentSets } from '../../../storage/threads/sent-sets.js';
import { configOf, specOf, temporaryFolder } from '../replica/support.js';
import { ALONE } from '../write.js';
import { UNLIMITED_LOGS } from './logs.js';

const KEY = 'test/0';

/** A home worker in a thread, spoken to by promises. */
class Home {
  readonly messages: FromWriter[] = [];
  private readonly waiting = new Map<number, (message: FromWriter) => void>();
  private nextId = 1;

  private constructor(private readonly worker: Worker) {
    worker.on('message', (message: FromWriter) => {
      this.messages.push(message);
      if (message.kind === 'answer' || message.kind === 'error') this.waiting.get(message.id)?.(message);
    });
  }

  static async start(t: TestContext): Promise<Home> {
    const workerData = { logs: UNLIMITED_LOGS, memory: unlimitedLedger().shareOf('writer-0') };
    const worker = new Worker(new URL('../../../storage/writer/writer.js', import.meta.url), { workerData });
    t.after(() => worker.terminate());
    const home = new Home(worker);
    await once(worker, 'message');
    assert.deepEqual(home.messages, [{ kind: 'ready' }]);
    return home;
  }

  ask(message: ToWriter extends infer M ? (M extends { id: number } ? Omit<M, 'id'> : never) : never): Promise<FromWriter> {
    const id = this.nextId++;
    const answer = new Promise<FromWriter>((resolve) => this.waiting.set(id, resolve));
    this.worker.postMessage({ ...message, id });
    return answer;
  }

  tell(message: ToWriter): void {
    this.worker.postMessage(message);
  }

  async open(folder: string, config = configOf(), key = KEY): Promise<ReplicaStats> {
    const answer = await this.ask({ kind: 'open', spec: { ...specOf(folder, config), key }, damaged: null, opening: 1 });
    assert.equal(answer.kind, 'answer');
    return (answer as { stats: ReplicaStats }).stats;
  }

  /** The body of the answer, or the code of the error. */
  async write(
    operation: WriteOperation,
    body: unknown,
    options: { wait?: boolean; deadlineMs?: number; path?: Record<string, string>; key?: string } = {},
  ): Promise<unknown> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const undecoded: UndecodedUpdate = { operation, path: options.path ?? {} };
    const write: TimedWrite = {
      operations: [new TextEncoder().encode(text)],
      until: (options.wait ?? true) ? 'shown' : 'logged',
      deadlineMs: options.deadlineMs ?? Number.MAX_SAFE_INTEGER,
      undecoded,
    };
    const answer = await this.ask({ kind: 'write', key: options.key ?? KEY, as: ALONE, write });
    if (answer.kind === 'error') return answer.error.code;
    const { failure, shape, tags } = (answer as { value: WrittenTags }).value;
    const error = failure ?? shape?.failure ?? null;
    if (error !== null || shape === undefined) return error?.code;
    const numbers = tags.map(({ index }) => index);
    return parseJson(updateAnswer({}, shape, numbers, write.until === 'logged' ? 'acknowledged' : 'completed'));
  }
}

const point = (id: number, payload?: object) => ({ id, vector: [1, 2, 3, id], payload });

test('writes are answered with their operation and whether they are applied', async (t) => {
  const home = await Home.start(t);
  assert.equal((await home.open(temporaryFolder(t))).points, 0);
  assert.deepEqual(await home.write('upsertPoints', { points: [point(1), point(2)] }), { operation_id: 1, status: 'completed' });
  assert.deepEqual(await home.write('upsertPoints', { points: [point(3)] }, { wait: false }), { operation_id: 2, status: 'acknowledged' });
  assert.deepEqual(await home.write('deletePoints', { points: [1] }), { operation_id: 3, status: 'completed' });
  const batch = { operations: [{ upsert: { points: [point(4)] } }, { set_payload: { payload: { a: 1 }, points: [4] } }] };
  assert.deepEqual(await home.write('batchUpdate', batch), [
    { operation_id: 4, status: 'completed' },
    { operation_id: 5, status: 'completed' },
  ]);
  assert.deepEqual(await home.write('batchUpdate', { operations: [] }), []);
  assert.deepEqual(await home.write('createFieldIndex', { field_name: 'a', field_schema: 'integer' }), {
    operation_id: 6,
    status: 'completed',
  });
  assert.deepEqual(await home.write('deleteFieldIndex', '', { path: { field_name: 'a' } }), { operation_id: 7, status: 'completed' });
  const last = home.messages.findLast((message) => message.kind === 'stats');
  assert.equal(last?.kind === 'stats' && last.stats.points, 3);
  assert.equal(
    home.messages.filter(({ kind }) => kind === 'publish').length,
    home.messages.filter(({ kind }) => kind === 'published').length,
  );
});

test('a refused request is answered for itself and leaves its group alone', async (t) => {
  const home = await Home.start(t);
  await home.open(temporaryFolder(t));
  const answers = await Promise.all([
    home.write('upsertPoints', { points: [point(1)] }),
    home.write('upsertPoints', '{"points": ['),
    home.write('upsertPoints', { points: [point(2), { id: 3, vector: [1] }] }),
    home.write('setPayload', { payload: { a: 1 }, points: [77] }),
    home.write('upsertPoints', { points: [point(4)] }, { deadlineMs: 1 }),
    home.write('batchUpdate', {
      operations: [{ upsert: { points: [point(5)] } }, { clear_payload: { points: [99] } }, { upsert: { points: [point(6)] } }],
    }),
    home.write('upsertPoints', { points: [point(7)] }),
  ]);
  assert.deepEqual(
    answers.map((answer) => (typeof answer === 'string' ? answer : 'completed')),
    ['completed', 'malformedBody', 'wrongInput', 'notFound', 'timeout', 'notFound', 'completed'],
  );
  const closed = await home.ask({ kind: 'configure', key: KEY, config: configOf(undefined, 1) });
  assert.equal(closed.kind === 'answer' && closed.stats?.points, 3);
});

test('many writes at once share commits', async (t) => {
  const home = await Home.start(t);
  const before = (await home.open(temporaryFolder(t))).commits;
  await Promise.all(Array.from({ length: 200 }, (_, id) => home.write('upsertPoints', { points: [point(id)] }, { wait: id % 2 === 0 })));
  const { commits, points } = await home
    .ask({ kind: 'configure', key: KEY, config: configOf() })
    .then((answer) => (answer as { stats: ReplicaStats }).stats);
  assert.equal(points, 200);
  assert.ok(commits - before < 100, `${commits - before} commits for 200 writes`);
});

const MANY = 20_000;
const setAll = { payload: { a: 1 }, filter: {} };

async function openLarge(home: Home, folder: string): Promise<void> {
  await home.open(folder);
  for (let from = 0; from < MANY; from += 5000)
    await home.write('upsertPoints', { points: Array.from({ length: 5000 }, (_, at) => point(from + at)) });
}

test('writes of other replicas are answered while an operation over many points goes on, its own ones behind it', async (t) => {
  const home = await Home.start(t);
  await openLarge(home, temporaryFolder(t));
  await home.open(temporaryFolder(t), configOf(), 'test/1');
  const order: string[] = [];
  const large = home.write('setPayload', setAll).then(() => order.push('large'));
  const behind = home.write('upsertPoints', { points: [point(1)] }).then(() => order.push('behind'));
  while (!order.includes('large')) {
    await home.write('upsertPoints', { points: [point(1)] }, { key: 'test/1' });
    order.push('other');
  }
  await Promise.all([large, behind]);
  const others = order.indexOf('large');
  assert.ok(others >= 3, `${others} writes of the other replica were answered before`);
  assert.ok(order.indexOf('behind') > others);
});

test('what the log has is told while an operation over many points goes on', async (t) => {
  const home = await Home.start(t);
  await openLarge(home, temporaryFolder(t));
  const order: string[] = [];
  const large = home.write('setPayload', setAll).then(() => order.push('large'));
  await home.ask({ kind: 'position', key: KEY }).then(() => order.push('position'));
  await large;
  assert.deepEqual(order, ['position', 'large']);
});

test('a replica is closed in the middle of an acknowledged operation, which goes on when it is opened', async (t) => {
  const home = await Home.start(t);
  const folder = temporaryFolder(t);
  await openLarge(home, folder);
  const acknowledged = { operation_id: 5, status: 'acknowledged' };
  assert.deepEqual(await home.write('setPayload', setAll, { wait: false }), acknowledged);
  const waiting = home.write('upsertPoints', { points: [point(1)] });
  const closed = home.ask({ kind: 'close', key: KEY, frees: false, why: 'asked' });
  assert.equal(await waiting, 'unavailable');
  assert.equal((await closed).kind, 'answer');
  const opened = await home.open(folder);
  assert.deepEqual([opened.appliedOperation, opened.points, opened.queuedOperations], [5, MANY, 0]);
  const rows = opened.segments.reduce((sum, segment) => sum + segment.rows, 0);
  assert.equal(rows, MANY);
});

test('replicas are closed, opened again, and refused while they are not open', async (t) => {
  const home = await Home.start(t);
  const folder = temporaryFolder(t);
  assert.equal(await home.write('upsertPoints', { points: [point(1)] }), 'unavailable');
  await home.open(folder);
  await home.write('upsertPoints', { points: [point(1)] }, { wait: false });
  assert.equal((await home.ask({ kind: 'close', key: KEY, frees: false, why: 'asked' })).kind, 'answer');
  assert.equal(await home.write('upsertPoints', { points: [point(1)] }), 'unavailable');
  assert.equal((await home.open(folder)).points, 1);
  const damaged = await home.ask({
    kind: 'open',
    spec: { ...specOf(path.join(folder, 'other')), key: 'test/1' },
    damaged: 'data.mdb is damaged',
    opening: 2,
  });
  assert.equal(damaged.kind === 'error' && damaged.error.code, 'storage');
});

test('cosine vectors are stored with length 1', async (t) => {
  const home = await Home.start(t);
  await home.open(temporaryFolder(t), configOf({ size: 4, distance: 'Cosine' }));
  await home.write('upsertPoints', { points: [{ id: 1, vector: [3, 0, 4, 0] }] });
  const sent = new SentSets();
  const sets = home.messages.flatMap((message) =>
    message.kind === 'publish' ? [sent.unpack({ key: message.spec.key, opening: message.opening }, message.set) as SegmentSet] : [],
  );
  const { memory, layout } = sets.flatMap(({ segments }) => segments).at(-1) as SegmentHandle;
  const stored = new Float32Array(memory.buffer, residentOffset(layout.vectors[0] as VectorLayout), 4);
  assert.deepEqual(
    [...stored].map((component) => Math.round(component * 1e6) / 1e6),
    [0.6, 0, 0.8, 0],
  );
});

test('encoded operations are checked, logged as they are and applied in order; the first that fails ends them', async (t) => {
  const home = await Home.start(t);
  const folder = temporaryFolder(t);
  await home.open(folder);
  const values = Float32Array.of(1, 0, 0, 0);
  const upsert = (id: number, name = ''): UpdateOperation => {
    const vectors = [{ kind: 'dense' as const, name, dim: 4, points: null, values }];
    return { kind: 'upsert', batch: { ids: [id], vectors, payloads: [{ id }] } };
  };
  const clear = (id: number): UpdateOperation => ({ kind: 'clearPayload', selector: { kind: 'ids', ids: [id] } });
  const write = async (until: TimedWrite['until'], ...operations: UpdateOperation[]): Promise<unknown> => {
    const encoded = operations.map((operation, index) => encodeUpdate({ operation, chained: index > 0 }));
    const asked: TimedWrite = { operations: encoded, until, deadlineMs: Number.MAX_SAFE_INTEGER };
    const answer = await home.ask({ kind: 'write', key: KEY, as: ALONE, write: asked });
    if (answer.kind === 'error') return answer.error.code;
    const { failure, tags } = (answer as { value: WrittenTags }).value;
    return failure?.code ?? tags.map(({ index }) => index);
  };
  const missing = async (...ids: number[]): Promise<unknown> => {
    return ((await home.ask({ kind: 'missing', key: KEY, ids })) as { value: unknown }).value;
  };
  assert.deepEqual(await write('logged', upsert(1), upsert(2)), [1, 2]);
  assert.equal(await missing(2, 1), null);
  assert.equal(await missing(2, 7, 8), 7);
  assert.equal(await write('shown', upsert(3), clear(9), upsert(4)), 'notFound');
  assert.equal(await missing(3, 4), 4);
  assert.equal(await write('shown', upsert(5, 'other')), 'wrongInput');
  assert.deepEqual(await write('applied', clear(3)), [6]);
  await home.ask({ kind: 'close', key: KEY, frees: false, why: 'asked' });
  assert.equal((await home.open(folder)).points, 3);
});

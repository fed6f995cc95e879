import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { Payload } from '../../../protocols/model/payload.js';
import type { UpdateOperation } from '../../../protocols/model/update.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { ringOf, shardIndexOf } from '../../../storage/sharding/ring.js';
import { ID_KEY_BYTES, rowKey, writeIdKey } from '../../../storage/wal/records.js';
import {
  applyTo,
  byIds,
  configOf,
  filterOn,
  logTo,
  Replica,
  type SeenPoint,
  specOf,
  temporaryFolder,
  upsert,
  vectorOf,
} from './support.js';

function payloads(points: Map<string, SeenPoint>): Record<string, Payload> {
  return Object.fromEntries([...points].map(([id, point]) => [id, point.payload]));
}

test('points are there with vectors, payload and the number of their operation, and again after opening anew', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  const uuid = '550e8400-e29b-41d4-a716-446655440000';
  replica.apply(
    upsert([
      { id: 1, seed: 1, payload: { a: 1 } },
      { id: uuid, seed: 2 },
    ]),
  );
  replica.apply(upsert([{ id: 18446744073709551615n, seed: 3, payload: { big: 18446744073709551615n } }]));
  replica.apply(upsert([{ id: 1, seed: 4 }]));
  const points = replica.points();
  assert.deepEqual(points.get('1'), { vectors: { '': vectorOf(4) }, payload: {}, version: 3 });
  assert.deepEqual(points.get(uuid), { vectors: { '': vectorOf(2) }, payload: {}, version: 1 });
  assert.deepEqual(points.get('18446744073709551615')?.payload, { big: 18446744073709551615n });
  assert.equal(replica.store.stats().points, 3);
  assert.equal(replica.store.stats().segments[0]?.deleted, 1);
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual(again.points(), points);
  assert.equal(again.store.stats().points, 3);
  assert.equal(again.apply(upsert([{ id: 5, seed: 5 }]))[0]?.operation, 4);
});

test('an opening that changes nothing writes nothing, and the replica goes on as ever', async (t) => {
  const folder = temporaryFolder(t);
  const first = await Replica.open(specOf(folder));
  first.apply(upsert([{ id: 1, seed: 1, payload: { a: 1 } }]), { kind: 'createFieldIndex', field: 'a', schema: { type: 'integer' } });
  first.apply({ kind: 'deletePoints', selector: byIds(1) }, upsert([{ id: 2, seed: 2 }]));
  const points = first.points();
  await first.close();
  const files = ['lmdb/data.mdb', 'asleep.json'].map((file) => path.join(folder, file));
  const before = files.map((file) => ({ bytes: readFileSync(file), at: statSync(file).mtimeMs }));
  for (let opening = 0; opening < 3; opening++) {
    const again = await Replica.open(specOf(folder));
    assert.deepEqual(again.points(), points);
    assert.equal(again.sets.size, 1);
    assert.equal(again.published.length, 1);
    await again.close();
    assert.deepEqual(
      files.map((file) => ({ bytes: readFileSync(file), at: statSync(file).mtimeMs })),
      before,
    );
  }
  const last = await Replica.within(t, specOf(folder));
  last.apply(upsert([{ id: 3, seed: 3 }]), { kind: 'deletePoints', selector: byIds(2) });
  assert.deepEqual([...last.points().keys()], ['3']);
});

test('payload operations change what they name and keep vectors', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  replica.apply(
    upsert([
      { id: 1, seed: 1, payload: { a: 1, n: { x: 1 } } },
      { id: 2, seed: 2 },
      { id: 3, seed: 3, payload: { a: 3 } },
    ]),
  );
  replica.apply(
    { kind: 'setPayload', selector: byIds(1, 2), payload: { b: 'new' }, key: null },
    { kind: 'setPayload', selector: byIds(1), payload: { y: 2 }, key: 'n' },
    { kind: 'setPayload', selector: filterOn('b', 'new'), payload: { c: true }, key: null },
    { kind: 'deletePayload', selector: byIds(1), keys: ['a'] },
    { kind: 'overwritePayload', selector: filterOn('a', 3), payload: { z: 0 }, key: null },
  );
  assert.deepEqual(payloads(replica.points()), { 1: { n: { x: 1, y: 2 }, b: 'new', c: true }, 2: { b: 'new', c: true }, 3: { z: 0 } });
  replica.apply({ kind: 'clearPayload', selector: byIds(1, 1) });
  assert.deepEqual(replica.points().get('1'), { vectors: { '': vectorOf(1) }, payload: {}, version: 7 });
});

test('an operation on points that are not there changes nothing and leaves its neighbours alone', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  const outcomes = replica.apply(
    { kind: 'setPayload', selector: byIds(1), payload: { a: 1 }, key: null },
    { kind: 'setPayload', selector: byIds(1, 99), payload: { b: 2 }, key: null },
    { kind: 'deletePoints', selector: byIds(99) },
    upsert([{ id: 2, seed: 2 }]),
  );
  assert.deepEqual(
    outcomes.map(({ error }) => (error instanceof TroupeError ? error.detail : error)),
    [null, 'No point with id 99 found', null, null],
  );
  assert.deepEqual(payloads(replica.points()), { 1: { a: 1 }, 2: {} });
});

test('operations of one request end with the first that fails', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const outcomes = applyTo(replica.store, [
    { operation: upsert([{ id: 1, seed: 1 }]), chained: false },
    { operation: { kind: 'clearPayload', selector: byIds(9) }, chained: true },
    { operation: upsert([{ id: 2, seed: 2 }]), chained: true },
    { operation: upsert([{ id: 3, seed: 3 }]), chained: false },
  ]);
  assert.deepEqual(
    outcomes.map(({ error }) => (error instanceof TroupeError ? error.code : error)),
    [null, 'notFound', 'skipped', null],
  );
  assert.deepEqual([...replica.points().keys()], ['1', '3']);
});

test('points are deleted by id and by filter, and come back when they are written again', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  replica.apply(upsert([1, 2, 3, 4].map((id) => ({ id, seed: id, payload: { even: id % 2 === 0 } }))));
  replica.apply({ kind: 'deletePoints', selector: byIds(1, 77) }, { kind: 'deletePoints', selector: filterOn('even', true) });
  assert.deepEqual([...replica.points().keys()], ['3']);
  replica.apply({ kind: 'deletePoints', selector: { kind: 'filter', filter: { must: [], should: [], mustNot: [], minShould: null } } });
  assert.equal(replica.points().size, 0);
  replica.apply(upsert([{ id: 2, seed: 9 }]));
  assert.deepEqual(replica.points().get('2')?.vectors, { '': vectorOf(9) });
});

test("an operation by a filter means its shard's points only: copies of others' beside them follow those", async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const ids = Array.from({ length: 40 }, (_, at) => at + 1);
  replica.apply(upsert(ids.map((id) => ({ id, seed: id, payload: { a: 1 } }))));
  const ring = ringOf([3, 5]);
  const own = ids.filter((id) => shardIndexOf(ring, id) === 1).map(String);
  const selector = { ...filterOn('a', 1), of: { ring: ring.shards, shardId: 5 } };
  replica.apply({ kind: 'setPayload', selector, payload: { b: 1 }, key: null });
  const changed = [...replica.points()].flatMap(([id, { payload }]) => ('b' in payload ? [id] : []));
  assert.deepEqual(changed.sort(), own.sort());
  replica.apply({ kind: 'deletePoints', selector });
  assert.deepEqual(
    [...replica.points().keys()].sort(),
    ids
      .map(String)
      .filter((id) => !own.includes(id))
      .sort(),
  );
});

test('modes and filters say which points of an upsert are written', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const write = (mode: 'upsert' | 'insertOnly' | 'updateOnly', ids: number[], seed: number, only?: number) => {
    const { batch } = upsert(ids.map((id) => ({ id, seed, payload: { v: seed } }))) as UpdateOperation & { kind: 'upsert' };
    replica.apply({ kind: 'upsert', batch, mode, filter: only === undefined ? null : filterOn('v', only).filter });
  };
  write('upsert', [1, 2], 10);
  write('insertOnly', [2, 3], 20);
  write('updateOnly', [1, 4], 30);
  write('upsert', [1, 2, 5], 40, 10);
  assert.deepEqual(payloads(replica.points()), { 1: { v: 30 }, 2: { v: 40 }, 3: { v: 20 }, 5: { v: 40 } });
});

test('named vectors are set, replaced and deleted one by one', async (t) => {
  const replica = await Replica.within(
    t,
    specOf(temporaryFolder(t), configOf({ a: { size: 2, distance: 'Dot' }, b: { size: 3, distance: 'Dot', datatype: 'uint8' } })),
  );
  const column = (name: string, dim: number, points: number[] | null, values: number[]) => ({
    kind: 'dense' as const,
    name,
    dim,
    points: points && Uint32Array.from(points),
    values: Float32Array.from(values),
  });
  replica.apply({
    kind: 'upsert',
    batch: {
      ids: [1, 2],
      vectors: [column('a', 2, null, [1, 2, 3, 4]), column('b', 3, [1], [7.6, 300, -5])],
      payloads: [{ k: 1 }, undefined],
    },
  });
  assert.deepEqual(replica.points().get('2')?.vectors, { a: [3, 4], b: [7, 255, 0] });
  replica.apply({
    kind: 'updateVectors',
    batch: { ids: [1, 1], vectors: [column('a', 2, [0], [9, 9]), column('b', 3, [1], [1, 2, 3])], payloads: [undefined, undefined] },
  });
  assert.deepEqual(replica.points().get('1'), { vectors: { a: [9, 9], b: [1, 2, 3] }, payload: { k: 1 }, version: 2 });
  replica.apply({ kind: 'deleteVectors', selector: byIds(1, 2), names: ['a'] });
  assert.deepEqual(
    [...replica.points().values()].map(({ vectors }) => vectors),
    [{ b: [1, 2, 3] }, { b: [7, 255, 0] }],
  );
});

test('a reader keeps its moment while the writer goes on', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  replica.apply(
    upsert([
      { id: 1, seed: 1, payload: { a: 1 } },
      { id: 2, seed: 2 },
    ]),
  );
  const before = replica.seen();
  replica.apply(
    upsert([
      { id: 1, seed: 5 },
      { id: 3, seed: 3 },
    ]),
    { kind: 'deletePoints', selector: byIds(2) },
  );
  // Memory has changed, the snapshot has not; only the id of a moved point leads elsewhere, which `seen` would tell.
  assert.deepEqual(replica.seen(false), before);
  assert.deepEqual([...replica.points().keys()].sort(), ['1', '3']);
});

test('a transaction that fails leaves memory and disk as they were, and the replica usable', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply({ kind: 'createFieldIndex', field: 'a', schema: { type: 'integer' } });
  replica.apply(
    upsert([
      { id: 1, seed: 1, payload: { a: 1 } },
      { id: 2, seed: 2, payload: { a: 2 } },
    ]),
  );
  const points = replica.points();
  const stats = replica.store.stats();
  const { write } = Environment.prototype;
  t.mock.method(Environment.prototype, 'write', function (this: Environment, action: () => unknown) {
    return write.call(this, () => {
      action();
      throw new Error('a bug after everything was written');
    });
  });
  const failing = () =>
    replica.apply(
      upsert([
        { id: 1, seed: 7, payload: { a: 7 } },
        { id: 3, seed: 3, payload: { a: 3 } },
      ]),
      { kind: 'deletePoints', selector: byIds(2, 1) },
    );
  assert.throws(failing, /a bug after everything was written/);
  t.mock.restoreAll();
  assert.deepEqual(replica.points(), points);
  assert.deepEqual({ ...replica.store.stats() }, { ...stats });
  replica.apply(upsert([{ id: 3, seed: 3, payload: { a: 3 } }]));
  assert.equal(replica.points().size, 3);
  assert.equal(replica.store.stats().fieldPoints.get('a'), 3);
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.equal(again.points().size, 3);
});

test('a bug in one operation of a group is that operation alone', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  // No decoder makes such a filter.
  const broken = { kind: 'deletePoints', selector: { kind: 'filter', filter: null as never } } as const;
  logTo(replica.store, [{ operation: upsert([{ id: 1, seed: 1 }]), chained: false }]);
  const outcomes = replica.apply(upsert([{ id: 2, seed: 2 }]), broken, upsert([{ id: 3, seed: 3 }]));
  assert.deepEqual(
    outcomes.map(({ error }) => (error as TroupeError | null)?.code),
    [undefined, 'internal', undefined],
  );
  assert.deepEqual([...replica.points().keys()], ['1', '2', '3']);
  assert.equal(replica.warnings.length, 2);
});

test('what hangs on an operation that was refused as a bug is refused with it', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const broken = { kind: 'deletePoints', selector: { kind: 'filter', filter: null as never } } as const;
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  const outcomes = applyTo(replica.store, [
    { operation: broken, chained: false },
    { operation: upsert([{ id: 2, seed: 2 }]), chained: true },
    { operation: upsert([{ id: 3, seed: 3 }]), chained: false },
  ]);
  assert.deepEqual(
    outcomes.map(({ isNothing }) => isNothing),
    [true, true, false],
  );
  assert.equal(outcomes[1]?.error, 'skipped');
  assert.deepEqual([...replica.points().keys()], ['1', '3']);
});

test('an operation that is logged and cannot be applied is never lost: the replica goes no further, and does not open without it', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  const broken = { kind: 'setPayload', payload: null as never, selector: byIds(1), key: null } as const;
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  logTo(replica.store, [
    { operation: broken, chained: false },
    { operation: upsert([{ id: 2, seed: 2 }]), chained: false },
  ]);
  assert.throws(() => replica.apply(upsert([{ id: 3, seed: 3 }])), { code: 'storage', message: /operation 2 is logged/ });
  assert.equal(replica.store.operations.waiting, 2);
  assert.deepEqual([...replica.points().keys()], ['1']);
  await replica.close();
  await assert.rejects(Replica.open(specOf(folder)), { message: /operation 2 is logged/ });
});

test('a log of an earlier release, which kept operations that fail, is applied at opening and goes on', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  logTo(replica.store, [
    { operation: upsert([{ id: 1, seed: 1 }]), chained: false },
    { operation: { kind: 'clearPayload', selector: byIds(9) }, chained: false },
    { operation: upsert([{ id: 2, seed: 2 }]), chained: true },
    { operation: upsert([{ id: 3, seed: 3, payload: { text: 'x'.repeat(100_000) } }]), chained: false },
  ]);
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual([...again.points().keys()], ['1', '3']);
  assert.deepEqual(again.store.log.position.last, { peer: 0, term: 0, index: 4 });
  assert.equal(again.apply(upsert([{ id: 4, seed: 4 }]))[0]?.operation, 5);
});

test('what was logged is applied when the replica is opened again', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  assert.deepEqual(
    logTo(replica.store, [
      { operation: upsert([{ id: 2, seed: 2 }]), chained: false },
      { operation: { kind: 'deletePoints', selector: byIds(1) }, chained: false },
    ]),
    [2, 3],
  );
  assert.deepEqual([...replica.points().keys()], ['1']);
  assert.equal(replica.store.stats().queuedOperations, 2);
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual([...again.points().keys()], ['2']);
  assert.deepEqual([again.store.stats().queuedOperations, again.store.stats().appliedOperation], [0, 3]);
});

test('a full appendable segment is followed by a new one, within one operation too', async (t) => {
  const folder = temporaryFolder(t);
  // 256 rows fit in an appendable segment of vectors this wide.
  const spec = specOf(folder, configOf({ size: 65_536, distance: 'Dot' }));
  const replica = await Replica.open(spec);
  const dim = 65_536;
  const wide = (ids: number[]): UpdateOperation => ({
    kind: 'upsert',
    batch: {
      ids,
      vectors: [{ kind: 'dense', name: '', dim, points: null, values: new Float32Array(ids.length * dim).fill(1) }],
      payloads: ids.map((id) => ({ id })),
    },
  });
  for (let from = 0; from < 300; from += 60) replica.apply(wide(Array.from({ length: 60 }, (_, i) => from + i)));
  assert.deepEqual(
    replica.store.stats().segments.map(({ rows, frozen }) => ({ rows, frozen })),
    [
      { rows: 256, frozen: true },
      { rows: 44, frozen: false },
    ],
  );
  replica.apply({ kind: 'setPayload', selector: byIds(0), payload: { moved: true }, key: null });
  const points = payloads(replica.points());
  assert.deepEqual([points[0], points[299], Object.keys(points).length], [{ id: 0, moved: true }, { id: 299 }, 300]);
  await replica.close();
  const again = await Replica.within(t, spec);
  assert.deepEqual(payloads(again.points()), points);
});

test('the WAL keeps applied operations up to its capacity', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.within(t, specOf(folder, configOf(undefined, 0)));
  for (let id = 0; id < 20; id++) replica.apply(upsert([{ id, seed: id }]));
  assert.ok(replica.store.stats().walBytes < 1024, 'at most the newest operation stays');
  const roomy = await Replica.within(t, specOf(temporaryFolder(t), configOf(undefined, 1)));
  for (let id = 0; id < 40; id++) {
    roomy.logThenApply(upsert([{ id, seed: id, payload: { text: 'x'.repeat(100_000) } }]));
  }
  const { walBytes } = roomy.store.stats();
  assert.ok(walBytes > 800_000 && walBytes < 1_200_000, `${walBytes} bytes of 4 MB`);
});

test('a write that is logged and applied together has no record without a leader; the log goes on behind it, also opened anew', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  logTo(replica.store, [{ operation: upsert([{ id: 1, seed: 1 }]), chained: false }]);
  assert.ok(replica.store.stats().walBytes > 0);
  replica.apply(upsert([{ id: 2, seed: 2 }]), upsert([{ id: 3, seed: 3 }]));
  const position = { last: { peer: 0, term: 0, index: 3 }, base: { peer: 0, term: 0, index: 3 } };
  assert.deepEqual([replica.store.stats().walBytes, replica.store.log.position], [0, position]);
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual(again.store.log.position, position);
  assert.deepEqual([...again.points()].map(([id, { version }]) => [id, version]).sort(), [
    ['1', 1],
    ['2', 2],
    ['3', 3],
  ]);
  // A leader comes: from here on others may ask for what follows.
  const by = { peer: 7, term: 1 };
  again.store.operations.apply([{ operation: 4, by, logged: { operation: upsert([{ id: 4, seed: 4 }]), chained: false } }]);
  const asked = again.store.log.entriesAfter({ peer: 0, term: 0, index: 3 }, Number.MAX_SAFE_INTEGER);
  assert.deepEqual(asked.kind === 'entries' && asked.entries.map(({ tag }) => tag), [{ ...by, index: 4 }]);
  assert.equal(again.store.log.entriesAfter({ peer: 0, term: 0, index: 2 }, 1).kind, 'compacted');
});

test('while a checkpoint is held, the log keeps what is applied after it', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  await replica.store.checkpoint(path.join(temporaryFolder(t), 'copy'));
  replica.apply(upsert([{ id: 2, seed: 2 }]));
  assert.ok(replica.store.stats().walBytes > 0);
  replica.store.releaseCheckpoint();
  replica.apply(upsert([{ id: 3, seed: 3 }]));
  assert.equal(replica.store.stats().walBytes, 0);
});

test('field indexes of appendable rows answer as payloads do, count points, and survive opening anew', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply(
    upsert(
      Array.from({ length: 300 }, (_, id) => ({
        id,
        seed: 1,
        payload: { n: id % 10, s: `k\0${id % 3}`, ...(id < 100 ? { f: id / 2 } : {}) },
      })),
    ),
  );
  replica.apply(
    { kind: 'createFieldIndex', field: 'n', schema: { type: 'integer' } },
    { kind: 'createFieldIndex', field: 's', schema: { type: 'keyword' } },
  );
  replica.apply({ kind: 'createFieldIndex', field: 'f', schema: { type: 'float' } });
  replica.apply(upsert(Array.from({ length: 50 }, (_, at) => ({ id: 1000 + at, seed: 1, payload: { n: 5, s: 'k\0', f: -1 } }))));
  replica.apply({ kind: 'deletePoints', selector: byIds(0, 1, 2) });
  assert.deepEqual(Object.fromEntries(replica.store.stats().fieldPoints), { n: 347, s: 347, f: 147 });
  const check = (seen: Replica): void => {
    const state = seen.view.refresh();
    const [segment, rows] = [...state.appendable][0] as [number, number];
    const count = (field: string, condition: Parameters<NonNullable<ReturnType<typeof seen.view.fieldIndex>>['match']>[0]): number => {
      const bits = new Uint32Array(Math.ceil(rows / 32));
      assert.equal(seen.view.fieldIndex(segment, field, rows)?.match(condition, bits), 'exact');
      return [...bits].reduce((sum, word) => sum + word.toString(2).replaceAll('0', '').replace('-', '').length, 0);
    };
    assert.equal(count('n', { kind: 'match', key: 'n', match: { kind: 'value', value: 5 } }), 80);
    assert.equal(count('s', { kind: 'match', key: 's', match: { kind: 'value', value: 'k\0' } }), 50);
    assert.equal(count('s', { kind: 'match', key: 's', match: { kind: 'any', values: ['k\x001', 'k\x002', 'none'] } }), 200);
    assert.equal(count('f', { kind: 'range', key: 'f', range: { gte: 0, lt: 10 } }), 20);
    assert.equal(count('f', { kind: 'fieldIsEmpty', key: 'f', isEmpty: true }), 200);
    assert.deepEqual(
      seen.view.fieldIndex(segment, 'n', rows)?.cardinality({ kind: 'match', key: 'n', match: { kind: 'value', value: 5 } }),
      { min: 80, max: 80 },
    );
    const values = new Map<unknown, number>();
    seen.view.fieldIndex(segment, 's', rows)?.countValues?.(null, (value, found) => values.set(value, found));
    assert.deepEqual(Object.fromEntries(values), { 'k\0': 50, 'k\x000': 100, 'k\x001': 100, 'k\x002': 100 });
    for (const direction of ['asc', 'desc'] as const) {
      const seenValues: number[] = [];
      const visited = seen.view.fieldIndex(segment, 'f', rows)?.visitInOrder?.(direction, 3, (value) => seenValues.push(value) < 7);
      assert.equal(visited, true);
      const sign = direction === 'asc' ? 1 : -1;
      assert.ok(
        seenValues.every((value, at) => sign * (value - 3) >= 0 && (at === 0 || sign * (value - (seenValues[at - 1] as number)) >= 0)),
      );
      assert.equal(seenValues.length, 7);
      assert.equal(seenValues[0], 3);
    }
    seen.view.release();
  };
  check(replica);
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  check(again);
  assert.deepEqual(Object.fromEntries(again.store.stats().fieldPoints), { n: 347, s: 347, f: 147 });
  again.apply({ kind: 'deleteFieldIndex', field: 'n' });
  again.view.refresh();
  assert.equal(again.view.fieldIndex(1, 'n', 10), undefined);
  again.view.release();
  again.apply({ kind: 'deletePoints', selector: filterOn('n', 5) });
  assert.equal(again.store.stats().points, 347 - 80);
});

test('ids of an appendable segment are listed in their order, from any on', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const uuid = 'aaaaaaaa-0000-4000-8000-000000000000';
  replica.apply(
    upsert([
      ...Array.from({ length: 600 }, (_, at) => ({ id: (at * 7) % 600, seed: 1 })),
      { id: uuid, seed: 1 },
      { id: 2n ** 63n, seed: 1 },
    ]),
  );
  const { view } = replica;
  const [segment] = [...view.refresh().appendable.keys()] as [number];
  const rows = [...view.scanIds(segment, null)];
  assert.equal(rows.length, 602);
  assert.deepEqual(rows.slice(0, 3), [0, (1 * 343) % 600, (2 * 343) % 600]);
  assert.deepEqual([...view.scanIds(segment, 2n ** 62n)].length, 2);
  assert.equal([...view.scanIds(segment, 599)].length, 3);
  view.release();
});

test('damaged values are reported by the name of their record', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert([{ id: 1, seed: 1.123, payload: { marker: 'find-me-in-the-file' } }]));
  await replica.close();
  const file = path.join(folder, 'lmdb', 'data.mdb');
  const pristine = readFileSync(file);
  const flip = (needle: Uint8Array): void => {
    const bytes = Buffer.from(pristine);
    for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1)) (bytes[at] as number) ^= 1;
    writeFileSync(file, bytes);
  };
  flip(new Uint8Array(Float32Array.from(vectorOf(1.123)).buffer));
  await assert.rejects(Replica.open(specOf(folder)), /rows\/1\/0/);
  flip(Buffer.from('find-me-in-the-file'));
  const damaged = await Replica.within(t, specOf(folder));
  assert.throws(() => damaged.points(), /payload\/1\/0/);
  damaged.view.release();
});

test('an id or a payload whose key is damaged hides no points and leaves none empty: the replica is not opened', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  // The first row has no payload, so that its record of payloads has another key than its record of rows.
  replica.apply(upsert(Array.from({ length: 60 }, (_, id) => ({ id, seed: id, ...(id === 0 ? {} : { payload: { id } }) }))));
  await replica.close();
  const file = path.join(folder, 'lmdb', 'data.mdb');
  const pristine = readFileSync(file);
  const spoil = (key: Uint8Array, at: number): void => {
    const bytes = Buffer.from(pristine);
    // LMDB has the length of a key before it.
    const needle = Buffer.concat([Uint8Array.of(key.length, 0), key]);
    let found = 0;
    for (let from = bytes.indexOf(needle); from >= 0; from = bytes.indexOf(needle, from + 1), found++)
      (bytes[from + 2 + at] as number) ^= 64;
    assert.ok(found > 0);
    writeFileSync(file, bytes);
  };
  const idKey = Buffer.alloc(ID_KEY_BYTES);
  writeIdKey(1, 33, idKey);
  // Of another segment, where a walk through this one's ends; within this one, in another place.
  for (const at of [0, ID_KEY_BYTES - 1]) {
    spoil(idKey, at);
    await assert.rejects(Replica.open(specOf(folder)), { code: 'storage', detail: /record `ids\/1`/ });
  }
  // In its order, but of a row that is not there.
  spoil(rowKey(1, 1), 6);
  await assert.rejects(Replica.open(specOf(folder)), { code: 'storage', detail: /record `payload\/1`/ });
});

test('an LMDB file that is gone or cut to nothing is not taken for a new one', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  await replica.close();
  truncateSync(path.join(folder, 'lmdb', 'data.mdb'), 0);
  await assert.rejects(Replica.open(specOf(folder)), { code: 'storage' });
  assert.ok(existsSync(path.join(folder, 'format.json')));
});

test('a replica that a check found damaged is not opened', async (t) => {
  await assert.rejects(Replica.open(specOf(temporaryFolder(t)), 'data.mdb is damaged'), { code: 'storage', detail: 'data.mdb is damaged' });
});

test('large operations and rows lie in files, which are cut to what counts and go with what they held', async (t) => {
  const folder = temporaryFolder(t);
  const spec = specOf(folder, configOf(undefined, 1));
  const replica = await Replica.open(spec);
  const many = (from: number): UpdateOperation =>
    upsert(Array.from({ length: 2000 }, (_, at) => ({ id: from + at, seed: at, payload: { text: 'x'.repeat(250) } })));
  for (let from = 0; from < 12_000; from += 2000) replica.logThenApply(many(from));
  // The first segment is small, and the second one has the other rows.
  assert.deepEqual(readdirSync(path.join(folder, 'rows')), ['1', '2']);
  const logs = () => readdirSync(path.join(folder, 'wal')).map(Number);
  const bytes = logs().reduce((sum, file) => sum + statSync(path.join(folder, 'wal', String(file))).size, 0);
  assert.ok(!logs().includes(1), 'the first file is gone');
  assert.ok(bytes < 3.5 * 2 ** 20, `${bytes} bytes for a capacity of 1 MB, with files of 1 MB and an operation each`);
  logTo(replica.store, [{ operation: many(12_000), chained: false }]);
  await replica.close();

  const size = statSync(path.join(folder, 'rows', '2')).size;
  appendFileSync(path.join(folder, 'rows', '2'), Buffer.alloc(1000, 1));
  writeFileSync(path.join(folder, 'rows', '99'), 'of a commit that never was');
  const again = await Replica.open(spec);
  assert.equal(again.store.stats().points, 14_000);
  assert.deepEqual(readdirSync(path.join(folder, 'rows')), ['1', '2']);
  assert.ok(statSync(path.join(folder, 'rows', '2')).size > size);
  again.apply(many(14_000));
  const points = again.points();
  await again.close();
  const last = await Replica.within(t, spec);
  assert.deepEqual(last.points(), points);
});

test('damaged files of rows and operations are reported by their path', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  const many = upsert(Array.from({ length: 4000 }, (_, id) => ({ id, seed: id })));
  replica.logThenApply(many);
  await replica.close();
  const rows = path.join(folder, 'rows', '1');
  const log = path.join(folder, 'wal', '1');
  const pristine = [readFileSync(rows), readFileSync(log)] as const;
  truncateSync(rows, 1000);
  await assert.rejects(Replica.open(specOf(folder)), {
    code: 'storage',
    detail: `${rows}: torn: does not hold rows of segment 1 from 0 on any more`,
  });
  writeFileSync(rows, pristine[0]);

  // Applied operations are not needed; the file is not written any more.
  truncateSync(log, 1000);
  const warned = await Replica.open(specOf(folder));
  assert.match(warned.warnings.join(), /wal\/1: torn: 1000 bytes of/);
  logTo(warned.store, [{ operation: many, chained: false }]);
  await warned.close();
  assert.deepEqual(readdirSync(path.join(folder, 'wal')), ['1', '2']);

  const logged = path.join(folder, 'wal', '2');
  const bytes = readFileSync(logged);
  (bytes[500] as number) ^= 1;
  writeFileSync(logged, bytes);
  await assert.rejects(Replica.open(specOf(folder)), (error: TroupeError) => error.detail.startsWith(`${logged}: operation 2 `));
});

test('a replica of an unknown format is refused by its number', async (t) => {
  const folder = temporaryFolder(t);
  await (await Replica.open(specOf(folder))).close();
  const file = path.join(folder, 'format.json');
  writeFileSync(file, '{"format":3}\n');
  await assert.rejects(Replica.open(specOf(folder)), {
    code: 'storage',
    detail: `${file}: unknown format 3; this release reads formats 4 and 5 and 6 and 7`,
  });
  writeFileSync(file, '');
  await assert.rejects(Replica.open(specOf(folder)), { code: 'storage', detail: `${file} is damaged` });
});

test("a record of the log's leaders that is damaged is named", async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  const by = { peer: 123_456_789, term: 1 };
  replica.store.operations.apply([{ operation: 1, by, logged: { operation: upsert([{ id: 3, seed: 3 }]), chained: false } }]);
  await replica.close();
  const file = path.join(folder, 'lmdb', 'data.mdb');
  const bytes = readFileSync(file);
  for (let at = bytes.indexOf('123456789'); at >= 0; at = bytes.indexOf('123456789', at + 1)) (bytes[at] as number) ^= 1;
  writeFileSync(file, bytes);
  await assert.rejects(Replica.open(specOf(folder)), /record `meta\/log` is damaged/);
});

test('a log that may keep less than it has is shortened in some commits, and tells others that it does not go back any more', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const text = 'x'.repeat(100_000);
  for (let id = 1; id <= 100; id++) replica.logThenApply(upsert([{ id, seed: id, payload: { text } }]));
  const { retention } = replica.store;
  assert.ok(replica.store.stats().walBytes > 2_000_000);
  assert.equal(retention.isTooLong, false);
  retention.limit(1_000_000);
  assert.equal(retention.isTooLong, true);
  while (replica.store.shortenLog());
  const { walBytes } = replica.store.stats();
  assert.ok(walBytes <= 1_000_000 && walBytes > 900_000, `${walBytes} bytes`);
  assert.equal(replica.points().size, 100);
  assert.ok(replica.store.log.position.base.index > 40);
  retention.limit(0);
  while (replica.store.shortenLog());
  assert.equal(replica.store.stats().walBytes, 0);
  assert.deepEqual(readdirSync(path.join(replica.spec.folder, 'wal')), [], 'the file that was written last goes with its operations');
});

test('a checkpoint whose log grows beyond its bound is given up: the log is cut, and the loss is told until the checkpoint is let go of', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const { retention } = replica.store;
  replica.apply(upsert([{ id: 0, seed: 1 }]));
  await replica.store.checkpoint(path.join(temporaryFolder(t), 'copy'));
  retention.limit(1_000_000);
  const text = 'x'.repeat(100_000);
  const write = (id: number) => replica.apply(upsert([{ id, seed: id, payload: { text } }]));
  for (let id = 1; id <= 9; id++) write(id);
  assert.deepEqual([retention.keepsLog, replica.store.stats().lostCheckpoint], [true, undefined]);
  assert.ok(replica.store.stats().walBytes > 900_000, 'within its bound everything after the checkpoint is kept');
  for (let id = 10; id <= 40; id++) write(id);
  assert.deepEqual([retention.keepsLog, replica.store.stats().lostCheckpoint], [false, true]);
  assert.ok(replica.store.stats().walBytes <= 1_000_000);
  assert.ok(replica.warnings.some((warning) => warning.includes('a checkpoint for a transfer is given up')));
  assert.throws(() => replica.store.checkpoint(path.join(temporaryFolder(t), 'next')), /has not been released yet/);
  replica.store.releaseCheckpoint();
  await replica.store.checkpoint(path.join(temporaryFolder(t), 'next'));
  assert.deepEqual([retention.keepsLog, replica.store.stats().lostCheckpoint], [true, undefined]);
  assert.equal(replica.points().size, 41);
});

test('a replica with few rows is opened in little memory, and what it gets beyond that goes to further segments, also after openings', async (t) => {
  const folder = temporaryFolder(t);
  const first = await Replica.open(specOf(folder));
  first.apply(upsert([{ id: 1, seed: 1 }]));
  const made = [...first.sets.values()].at(-1)?.segments[0]?.layout;
  await first.close();
  const opened = await Replica.open(specOf(folder));
  const [loaded] = [...opened.sets.values()].at(-1)?.segments ?? [];
  assert.equal(loaded?.layout.capacity, 256);
  assert.equal(made?.capacity, 4096);
  opened.apply(upsert(Array.from({ length: 600 }, (_, at) => ({ id: at, seed: at }))));
  const points = opened.points();
  assert.equal(points.size, 600);
  assert.deepEqual(
    opened.store.stats().segments.map(({ deleted, rows }) => rows - deleted),
    [255, 345],
  );
  await opened.close();
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual(again.points(), points);
  // The first one was made with room for 4096 rows, and gets some of it back.
  assert.deepEqual(
    [...again.sets.values()].at(-1)?.segments.map(({ layout }) => layout.capacity),
    [512, 1024],
  );
  again.apply(upsert([{ id: 700, seed: 700 }]));
  assert.equal(again.points().size, 601);
});

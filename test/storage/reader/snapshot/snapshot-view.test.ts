import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { FilterCache } from '../../../../query/filter/cache.js';
import { initChecksum } from '../../../../storage/disk/checksum.js';
import { Environment } from '../../../../storage/disk/lmdb.js';
import { ReplicaReader } from '../../../../storage/reader/snapshot/snapshot-view.js';
import { makeAppendable } from '../../../../storage/replica/segment-rows.js';
import { Deadline } from '../../../../storage/threads/deadline.js';
import { ReplicaUses } from '../../../../storage/threads/replica-uses.js';
import { ScratchTurns, scratchTurns } from '../../../../storage/threads/scratch-turns.js';
import { encodeReplicaState, STATE_KEY } from '../../../../storage/wal/records.js';
import { configOf, noteDeletions } from '../../engine/collection-fixture.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-view-'));
const config = configOf({ size: 2, distance: 'Dot' });
const spec = { key: 'c/0', folder, config, readers: 1 };
const environment = Environment.open(path.join(folder, 'lmdb'), () => {});
await initChecksum();
const reader = new ReplicaReader(spec, {
  index: 0,
  turns: new ScratchTurns(scratchTurns(1), 0),
  uses: new ReplicaUses(),
  deadline: new Deadline(),
  filters: new FilterCache(1000),
});

after(async () => {
  await reader.close();
  await environment.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

function commit(generation: number, commitNumber: number, rows: ReadonlyMap<number, number>): void {
  const state = encodeReplicaState({ generation, commit: commitNumber, appliedOperation: 0, appendable: rows });
  environment.write(() => environment.put('meta', STATE_KEY, state));
}

const attach = (generation: number, segments: readonly ReturnType<typeof makeAppendable>[], openCommit = 10): void =>
  reader.attach({
    kind: 'attach',
    place: 0,
    spec,
    opening: openCommit,
    openCommit,
    commits: environment.commits,
    fields: new Map(),
    set: { generation, segments: segments.map(({ handle }) => handle) },
  });

const one = makeAppendable(1, config, 3);
const two = makeAppendable(2, config, 3);

test('a commit whose set has not come gives no snapshot until it comes', () => {
  commit(5, 11, new Map([[1, 0]]));
  assert.equal(reader.snapshot(), null);
  attach(5, [one]);
  const snapshot = reader.snapshot();
  assert.equal(snapshot?.segments.length, 1);
  snapshot?.release();
});

test('a set that is announced but not committed changes nothing', () => {
  attach(6, [one, two]);
  const snapshot = reader.snapshot();
  assert.deepEqual(
    snapshot?.segments.map(({ handle }) => handle.id),
    [1],
  );
  snapshot?.release();
});

test('rows count up to the snapshot’s rows, and deletions up to its commit (View-V1)', () => {
  const deletedAt = new Uint32Array(one.handle.memory.buffer, one.handle.layout.deletedAt, 4);
  deletedAt.set([3, 4, 0xffff_ffff, 0xffff_ffff]);
  noteDeletions(one.handle);
  commit(5, 13, new Map([[1, 3]]));
  const snapshot = reader.snapshot();
  const [view] = snapshot?.segments ?? [];
  assert.deepEqual(
    [0, 1, 2, 3].map((row) => view?.isLive(row)),
    [false, true, true, false],
  );
  snapshot?.release();
});

test('a retired set is gone', () => {
  commit(6, 14, new Map([[1, 3]]));
  reader.retire(6);
  const snapshot = reader.snapshot();
  assert.deepEqual(
    snapshot?.segments.map(({ handle, rows }) => [handle.id, rows]),
    [
      [1, 3],
      [2, 0],
    ],
  );
  snapshot?.release();
  commit(5, 15, new Map([[1, 3]]));
  assert.equal(reader.snapshot(), null);
});

test('sets of an earlier opening are forgotten when the replica is opened anew', () => {
  attach(7, [two], 20);
  commit(6, 21, new Map());
  assert.equal(reader.snapshot(), null);
  commit(7, 21, new Map([[2, 1]]));
  const snapshot = reader.snapshot();
  assert.equal(snapshot?.segments[0]?.rows, 1);
  snapshot?.release();
});

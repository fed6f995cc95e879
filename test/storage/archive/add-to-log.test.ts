import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import type { ShardEntry } from '../../../protocols/model/shard-log.js';
import { encodeUpdate, NOTHING } from '../../../protocols/update-codec.js';
import { addToLog } from '../../../storage/archive/add-to-log.js';
import { configOf, Replica, specOf, temporaryFolder, upsert } from '../replica/support.js';

const entry = (index: number, operation: Uint8Array, timeMs: number): ShardEntry => ({
  tag: { peer: 0, term: 0, index },
  operation,
  timeMs,
});

test('a copy goes on with the operations that it is given, and ends where they end', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  replica.logThenApply(upsert([{ id: 1, seed: 1 }]), upsert([{ id: 2, seed: 2 }]));
  const folder = path.join(temporaryFolder(t), 'copy');
  const { at } = await replica.store.checkpoint(folder);
  replica.logThenApply(upsert([{ id: 2, seed: 5, payload: { text: 'x'.repeat(20_000) } }]), upsert([{ id: 3, seed: 3 }]));
  const part = replica.store.log.entriesAfter(at, Number.MAX_SAFE_INTEGER);
  assert.ok(part.kind === 'entries');
  const good = replica.points();
  replica.logThenApply({ kind: 'deletePoints', selector: { kind: 'ids', ids: [1, 2, 3] } });

  const { params } = configOf();
  for (const one of part.entries) await addToLog(folder, [{ ...one, timeMs: 1000 + one.tag.index }], params);
  await addToLog(folder, [entry(9, encodeUpdate(NOTHING), 5000)], params);
  assert.ok(!existsSync(path.join(folder, 'lmdb', 'lock.mdb')));
  const copy = await Replica.within(t, specOf(folder));
  assert.deepEqual(copy.points(), good);
  assert.deepEqual(copy.warnings, []);
  assert.deepEqual(copy.store.log.position, { last: { peer: 0, term: 0, index: 9 }, base: at });
  const reach = copy.store.reachOf({ peer: 0, term: 0, index: 3 }, 1004);
  assert.ok(reach.kind === 'reaches');
  assert.deepEqual([reach.fromMs, reach.to.index, reach.toMs, reach.nextMs], [1003, 4, 1004, 5000]);
});

test('operations on vectors that the collection does not have any more are refused: a replica with them could not be opened', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  replica.logThenApply(upsert([{ id: 1, seed: 1 }]));
  const folder = path.join(temporaryFolder(t), 'copy');
  await replica.store.checkpoint(folder);
  const operation = encodeUpdate({ operation: upsert([{ id: 1, seed: 1 }]), chained: false });
  const { params } = configOf({ other: { size: 4, distance: 'Dot' } });
  await assert.rejects(addToLog(folder, [entry(2, operation, 1)], params), { code: 'wrongInput', message: /does not have any more/ });
  const copy = await Replica.within(t, specOf(folder));
  assert.equal(copy.store.log.position.last.index, 1);
});

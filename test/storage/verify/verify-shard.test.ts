import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import type { PointBatch, UpdateOperation } from '../../../protocols/model/update.js';
import { verifyShard } from '../../../storage/verify/verify-shard.js';
import { byIds, configOf, DIM, Replica, specOf, temporaryFolder, upsert } from '../replica/support.js';

function withVectors(ids: number[], values: number[]): UpdateOperation {
  const batch: PointBatch = {
    ids,
    vectors: [{ kind: 'dense', name: '', dim: DIM, points: null, values: Float32Array.from(values) }],
    payloads: ids.map(() => undefined),
  };
  return { kind: 'upsert', batch };
}

/** Every file below a folder but LMDB's lock, with its bytes. */
function bytesOf(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && entry.name !== 'lock.mdb',
  );
  return Object.fromEntries(
    entries.map((entry) => {
      const file = path.join(entry.parentPath, entry.name);
      return [file, `${statSync(file).mtimeMs} ${readFileSync(file).toString('base64')}`];
    }),
  );
}

test('a sound shard has no problems, and nothing of it changes', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  // Enough for chunks in files of their own, beside rows in LMDB.
  replica.apply(upsert(Array.from({ length: 2000 }, (_, id) => ({ id, seed: id, payload: { id } }))));
  replica.apply({ kind: 'deletePoints', selector: byIds(3, 4) }, { kind: 'createFieldIndex', field: 'id', schema: { type: 'integer' } });
  await replica.close();
  // What a crash may leave: a start would remove it.
  mkdirSync(path.join(folder, 'rows'), { recursive: true });
  for (const file of readdirSync(path.join(folder, 'rows'))) appendFileSync(path.join(folder, 'rows', file), 'not committed');
  writeFileSync(path.join(folder, 'rows', '99'), 'not committed');
  const before = bytesOf(folder);
  assert.deepEqual(await verifyShard(folder, configOf()), { points: 1998, problems: [] });
  assert.deepEqual(bytesOf(folder), before);
});

test('points whose stored vectors are infinite or no numbers are named; deleted ones are none', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  // Through no door: these refuse such numbers.
  const rows = [
    [1, 1, 2, 3, 4],
    [2, 1, Number.POSITIVE_INFINITY, 3, 4],
    [3, Number.NaN, 2, 3, 4],
    [4, 1, 2, 3, Number.NEGATIVE_INFINITY],
  ];
  replica.apply(
    withVectors(
      rows.map(([id]) => id as number),
      rows.flatMap(([, ...vector]) => vector),
    ),
  );
  replica.apply({ kind: 'deletePoints', selector: byIds(4) });
  await replica.close();
  const { points, problems } = await verifyShard(folder, configOf());
  assert.equal(points, 3);
  assert.equal(problems.length, 1, problems.join('\n'));
  assert.match(problems[0] as string, /the vector of 2 points .* no finite numbers: write these points again, or delete them: 2, 3$/);
});

test('damage is named by its file or record', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert(Array.from({ length: 2000 }, (_, id) => ({ id, seed: id, payload: { id } }))));
  await replica.close();
  const rows = path.join(folder, 'rows');
  const [file] = readdirSync(rows);
  const name = path.join(rows, file as string);
  const bytes = readFileSync(name);
  (bytes[100] as number) ^= 1;
  writeFileSync(name, bytes);
  const { problems } = await verifyShard(folder, configOf());
  assert.equal(problems.length, 1);
  assert.ok(problems[0]?.includes(name), problems[0]);
});

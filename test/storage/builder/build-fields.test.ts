import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { parseValues } from '../../../protocols/json.js';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { Payload } from '../../../protocols/model/payload.js';
import { buildFieldIndexes } from '../../../storage/builder/build-fields.js';
import { buildFieldIndex } from '../../../storage/segment/index/build.js';
import { closeSegmentFiles, writePayloadFile } from '../../../storage/segment/payload-file.js';
import { replicaFolder, writeFixture } from '../segment/fixture.js';
import { freeControl } from './fixture.js';

const ROWS = 9000;
const FIELDS = new Map<string, FieldSchema>([
  ['n', { type: 'integer' }],
  ['word', { type: 'keyword' }],
  ['own', { type: 'keyword' }],
  ['place', { type: 'geo' }],
  ['text', { type: 'text' }],
  ['nowhere', { type: 'bool' }],
]);

function payloadOf(row: number): Payload {
  if (row % 11 === 0) return {};
  return {
    n: row % 3 === 0 ? [row, 1n << 60n, null] : -row,
    word: `w${row % 7}`,
    own: `only ${row}`,
    place: { lat: row % 80, lon: (row % 300) - 150 },
    text: `row ${row} of many, ${'word '.repeat(row % 9)}`,
  } as Payload;
}

function textOf(row: number): Buffer {
  return Buffer.from(JSON.stringify(payloadOf(row), (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)));
}

const replica = replicaFolder();
test.after(() => fs.rmSync(replica, { recursive: true }));
const some = await writeFixture(replica, 1, 1);
const payloadOffsets = writePayloadFile(some.folder as string, 1, ROWS, textOf);
const segment = { ...some, rows: ROWS, payloadOffsets };
test.after(() => closeSegmentFiles(segment));

for (const [what, bytesMax, passes] of [
  ['all at once', undefined, 1],
  // The first three take less than a megabyte each.
  ['as many at once as fit in a megabyte', 1 << 20, 3],
  ['one by one where no two fit', 1, FIELDS.size],
] as const)
  test(`indexes of fields are made ${what}, each as it would be alone, in the order of the fields`, async () => {
    let read = 0;
    const progress = (stage: string, done: number) => void (stage === 'reading payloads' && done === 0 && read++);
    const indexes = await buildFieldIndexes(segment, FIELDS, { ...freeControl, progress }, bytesMax);
    assert.deepEqual(
      indexes.map(({ field }) => field),
      [...FIELDS.keys()],
    );
    for (const { buffer, field } of indexes) {
      const parsed = (row: number) => parseValues(textOf(row)) as Payload;
      const alone = buildFieldIndex(FIELDS.get(field) as FieldSchema, ROWS, parsed, field);
      assert.ok(Buffer.from(alone).equals(Buffer.from(buffer)), field);
    }
    assert.equal(read, passes);
  });

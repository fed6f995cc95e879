import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { OrderedTexts } from '../../../storage/builder/ordered-texts.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { closeSegmentFiles, readPayloadTexts, writePayloadFile } from '../../../storage/segment/payload-file.js';
import { replicaFolder, writeFixture } from '../segment/fixture.js';

const replica = replicaFolder();
const some = await writeFixture(replica, 1, 1);
test.after(() => fs.rmSync(replica, { recursive: true }));

function sealedSource(id: number, texts: readonly string[]): SegmentHandle {
  const folder = path.join(replica, String(id));
  fs.mkdirSync(folder);
  const payloadOffsets = writePayloadFile(folder, id, texts.length, (row) => Buffer.from(texts[row] as string));
  return { ...some, id, folder, rows: texts.length, payloadOffsets };
}

test('each row has its own text, however many rows and sources there are, and whichever of these are read one by one', () => {
  const texts = [
    Array.from({ length: 90_000 }, (_, row) => (row % 3 === 0 ? '' : `{"first":${row}}`)),
    Array.from({ length: 40_000 }, (_, row) => `{"second":${row}}`),
    Array.from({ length: 30 }, (_, row) => `{"third":"${'x'.repeat(400_000)}${row}"}`),
    Array.from({ length: 1000 }, (_, row) => `{"fourth":${row}}`),
  ];
  const files = [texts[0], texts[2]].map((own, n) => sealedSource(10 + n, own as string[]));
  const inMemory = { ...sealedSource(12, texts[3] as string[]), payloadBytes: new SharedArrayBuffer(8) };
  const sources = [files[0], { ...some, kind: 'appendable', payloadOffsets: null }, files[1], inMemory] as SegmentHandle[];
  const rows = texts.reduce((sum, own) => sum + own.length, 0);
  const all = texts.flatMap((own, source) => own.map((text, row) => ({ source, row, text })));
  // 7919 and the number of rows have no factor in common.
  const taken = all.map((_, i) => all[(i * 7919) % rows] as (typeof all)[number]);
  let reads = 0;
  const ordered = new OrderedTexts(
    {
      text: (source, row) => {
        assert.equal(source, inMemory);
        return Buffer.from(texts[3]?.[row] as string);
      },
      texts: (source, some) => {
        if (source === inMemory) return null;
        reads++;
        return source.kind === 'sealed'
          ? readPayloadTexts(source, some)
          : (place) => Buffer.from(texts[1]?.[some[place] as number] as string);
      },
    },
    sources,
    { rows, sourceOf: Uint16Array.from(taken, ({ source }) => source), sourceRowOf: Uint32Array.from(taken, ({ row }) => row) },
  );
  taken.forEach(({ text }, row) => {
    if (Buffer.from(ordered.of(row)).toString() !== text) assert.fail(`row ${row} has another text`);
  });
  // 12 MB of texts, and more rows than are read ahead at once.
  assert.ok(reads > 8 && reads < 40, `${reads} reads`);
  for (const file of [...files, inMemory]) closeSegmentFiles(file);
});

test('of rows whose sizes are not known no more are read ahead than fit, as soon as a few of them are known', () => {
  const rows = 3000;
  const text = Buffer.alloc(100_000, 'x');
  const asked: number[] = [];
  const ordered = new OrderedTexts(
    {
      text: () => assert.fail('one by one'),
      texts: (_source, some) => {
        asked.push(some.length);
        return (place) => ((some[place] as number) < 2000 ? text : text.subarray(0, 10));
      },
    },
    [{ ...some, kind: 'appendable', payloadOffsets: null }] as SegmentHandle[],
    { rows, sourceOf: new Uint16Array(rows), sourceRowOf: Uint32Array.from({ length: rows }, (_, row) => row) },
  );
  for (let row = 0; row < rows; row++) assert.equal(ordered.of(row).length, row < 2000 ? text.length : 10, `row ${row}`);
  assert.ok((asked[0] as number) <= 256);
  assert.ok(Math.max(...asked.slice(1, 15)) * text.length < 9e6, asked.join());
});

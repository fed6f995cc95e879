import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { OrderedTexts } from '../../../storage/builder/ordered-texts.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { closeSegmentFiles, readPayloadText, readPayloadTexts, writePayloadFile } from '../../../storage/segment/payload-file.js';
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
  ];
  const files = [texts[0], texts[2]].map((own, n) => sealedSource(10 + n, own as string[]));
  const sources = [files[0], { ...some, kind: 'appendable', payloadOffsets: null }, files[1]] as SegmentHandle[];
  const rows = texts.reduce((sum, own) => sum + own.length, 0);
  const all = texts.flatMap((own, source) => own.map((text, row) => ({ source, row, text })));
  // 7919 and the number of rows have no factor in common.
  const taken = all.map((_, i) => all[(i * 7919) % rows] as (typeof all)[number]);
  let reads = 0;
  const ordered = new OrderedTexts(
    {
      text: (source, row) => (source.kind === 'sealed' ? readPayloadText(source, row) : Buffer.from(texts[1]?.[row] as string)),
      texts: (source, some) => {
        if (source.kind !== 'sealed') return null;
        reads++;
        return readPayloadTexts(source, some);
      },
    },
    sources,
    { rows, sourceOf: Uint16Array.from(taken, ({ source }) => source), sourceRowOf: Uint32Array.from(taken, ({ row }) => row) },
  );
  taken.forEach(({ text }, row) => {
    if (Buffer.from(ordered.of(row)).toString() !== text) assert.fail(`row ${row} has another text`);
  });
  // 12 MB of texts, and more rows than are read ahead at once.
  assert.ok(reads > 4 && reads < 20, `${reads} reads`);
  for (const file of files) closeSegmentFiles(file);
});

/** A small sealed segment made by hand, for tests of its files. */

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import { ID_KIND_UUID, idKind, type PointId, writeIdWords } from '../../../protocols/model/point-id.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { idColumns, sortOrder } from '../../../storage/segment/ids.js';
import { LIVE, segmentLayout, segmentMemory, type VectorPlan } from '../../../storage/segment/layout.js';
import { writePayloadFile } from '../../../storage/segment/payload-file.js';
import { beginSegmentFolder, publishSegmentFolder, segmentFolder, writeFieldIndex, writeSealed } from '../../../storage/segment/sealed.js';

export const PLANS: readonly VectorPlan[] = [
  {
    kind: 'dense',
    itemCapacity: 0,
    name: '',
    dim: 5,
    distance: 'Cosine',
    element: 'f32',
    codes: { scale: 0.1, origin: -1.25, exact: false },
    graph: { m: 4, m0: 8, efConstruct: 100, entryRow: 3, maxLevel: 1, upperWords: 10 },
  },
  { kind: 'dense', itemCapacity: 0, name: 'a/../b ü', dim: 3, distance: 'Manhattan', element: 'u8', codes: null, graph: null },
];

export const CITY: FieldSchema = { type: 'keyword', params: { is_tenant: true } };

/** Ids in no order: integers, integers beyond 2^53, UUIDs. */
export function idOf(row: number): PointId {
  if (row % 5 === 4) return `0000000${row % 10}-1111-4222-8333-${String(row).padStart(12, '0')}`;
  if (row % 5 === 3) return 2n ** 60n + BigInt((row * 7919) % 1009);
  return (row * 7919) % 10_007;
}

export function textOf(row: number): string {
  return row % 4 === 3 ? '{}' : `{"row":${row},"text":"${'é'.repeat(row % 50)}"}`;
}

/** A new folder that stands for a replica's. */
export function replicaFolder(): string {
  return fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-segment-'));
}

/** Writes segment `id` of `rows` rows with every kind of file and returns the handle it was written from. */
export async function writeFixture(replica: string, id: number, rows: number, sumsFromBytes?: number): Promise<SegmentHandle> {
  await initChecksum();
  const layout = segmentLayout(rows, PLANS, { ordered: true, readers: 1 });
  const memory = segmentMemory(layout);
  fillNoise(memory, layout.kinds);
  const columns = idColumns(memory, layout);
  for (let row = 0; row < rows; row++) {
    columns.kinds[row] = idKind(idOf(row));
    writeIdWords(idOf(row), columns.words, row * 4);
  }
  sortOrder(columns, rows);
  new Float64Array(memory.buffer, layout.versions, rows).forEach((_, row, versions) => {
    versions[row] = row + 2 ** 40;
  });
  new Uint32Array(memory.buffer, layout.deletedAt, rows).fill(LIVE);
  const folder = segmentFolder(replica, id);
  const unfinished = beginSegmentFolder(folder);
  const payloadOffsets = writePayloadFile(unfinished, id, rows, (row) => new TextEncoder().encode(textOf(row)));
  const index = { ...CITY, field: 'city/..', buffer: new SharedArrayBuffer(100) };
  new Uint8Array(index.buffer).fill(7);
  writeFieldIndex(unfinished, id, index);
  const description = { segment: id, rows, vectors: PLANS, report: { rows, milliseconds: 5, graphs: [] } };
  writeSealed(unfinished, description, memory, layout, sumsFromBytes === undefined ? {} : { sumsFromBytes });
  publishSegmentFolder(folder);
  return { id, kind: 'sealed', layout, memory, rows, folder, payloadOffsets, payloadBytes: null, fieldIndexes: [index], sparseIndexes: [] };
}

/** Ids of the fixture's rows, sorted as the model sorts them. */
export function sortedIds(rows: number): PointId[] {
  const kindOf = (id: PointId) => (idKind(id) === ID_KIND_UUID ? 1 : 0);
  return Array.from({ length: rows }, (_, row) => idOf(row)).sort((a, b) => kindOf(a) - kindOf(b) || (a < b ? -1 : a > b ? 1 : 0));
}

/** Deterministic bytes everywhere from `from` on. */
function fillNoise(memory: WebAssembly.Memory, from: number): void {
  const bytes = new Uint8Array(memory.buffer, from);
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 2654435761) >>> 13;
}

/**
 * Writes the answers of read operations as gRPC messages, without their last field: the door adds how long they took.
 * Fields are written last to first (see `WireWriter`).
 */

import { type MessageEnd, WireWriter } from '../../protocols/grpc/wire-writer.js';
import { writeValueMap } from '../../protocols/grpc/write-value.js';
import { parseStored } from '../../protocols/json.js';
import type { ShardKey } from '../../protocols/model/cluster.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { UpdateStatus } from '../../protocols/model/update.js';
import type { VectorValue } from '../../protocols/model/vector.js';
import { type AnswerLimits, NO_LIMITS } from '../threads/deadline.js';
import type { DistanceMatrix, MatrixRow } from './read-answer.js';
import type { GroupView, PointView, ReadResult, VectorView } from './result.js';

type FacetHit = Extract<ReadResult, { kind: 'facet' }>['hits'][number];
type WritePoint = (writer: WireWriter, field: number, point: PointView) => void;

/** Points that are printed between two checks of the deadline. */
const CHECK_POINTS = 1024;

/**
 * The message of an answer, in a buffer of its own. records: its points are RetrievedPoints, else ScoredPoints. Errors: those of the limits,
 * which are asked again and again.
 */
export function encodeGrpcResult(result: ReadResult, records: boolean, limits: AnswerLimits = NO_LIMITS): Uint8Array {
  const writer = new WireWriter();
  let printed = 0;
  const write = records ? writeRecord : writeScored;
  writeResult(writer, result, (to, field, point) => {
    if (++printed % CHECK_POINTS === 0) limits.check();
    write(to, field, point);
  });
  return writer.finish();
}

/** `UpdateStatus` of the API's gRPC reference. */
const STATUS_NUMBERS: Readonly<Record<UpdateStatus, number>> = { acknowledged: 1, completed: 2, wait_timeout: 4 };

/** Message of a write's answer: PointsOperationResponse, or UpdateBatchResponse with one result for each part. */
export function encodeGrpcUpdates(operations: readonly number[], status: UpdateStatus): Uint8Array {
  const writer = new WireWriter();
  eachBackwards(operations, (operation) => {
    const end = writer.endOf();
    writer.int(2, STATUS_NUMBERS[status]);
    if (operation !== 0) writer.int(1, operation);
    writer.message(1, end);
  });
  return writer.finish();
}

function writeResult(writer: WireWriter, result: ReadResult, writePoint: WritePoint): void {
  switch (result.kind) {
    case 'points':
    case 'queried':
      eachBackwards(result.points, (point) => writePoint(writer, 1, point));
      return;
    case 'pointLists':
    case 'queriedLists':
      eachBackwards(result.lists, (points) => {
        const end = writer.endOf();
        eachBackwards(points, (point) => writePoint(writer, 1, point));
        writer.message(1, end);
      });
      return;
    case 'point':
      writePoint(writer, 1, result.point);
      return;
    case 'scrolled':
      eachBackwards(result.points, (point) => writePoint(writer, 2, point));
      if (result.next !== null) writeId(writer, 1, result.next);
      return;
    case 'count':
      within(writer, 1, () => writer.int(1, result.count));
      return;
    case 'groups':
      within(writer, 1, () => eachBackwards(result.groups, (group) => writeGroup(writer, group)));
      return;
    case 'facet':
      eachBackwards(result.hits, (hit) => writeFacet(writer, hit));
      return;
    case 'matrixPairs':
      within(writer, 1, () => writePairs(writer, result.matrix));
      return;
    case 'matrixOffsets':
      within(writer, 1, () => writeOffsets(writer, result.matrix));
      return;
    default:
      result satisfies never;
  }
}

function writePairs(writer: WireWriter, { ids, neighbours }: DistanceMatrix): void {
  for (let from = neighbours.length - 1; from >= 0; from--) {
    const { at, scores } = neighbours[from] as MatrixRow;
    for (let i = at.length - 1; i >= 0; i--) {
      const end = writer.endOf();
      writer.float(3, scores[i] as number);
      writeId(writer, 2, ids[at[i] as number] as PointId);
      writeId(writer, 1, ids[from] as PointId);
      writer.message(1, end);
    }
  }
}

function writeOffsets(writer: WireWriter, { ids, neighbours }: DistanceMatrix): void {
  const count = neighbours.reduce((sum, { at }) => sum + at.length, 0);
  const scores = new Float32Array(count);
  const rows = new Uint32Array(count);
  const columns = new Uint32Array(count);
  let filled = 0;
  neighbours.forEach((row, from) => {
    scores.set(row.scores, filled);
    columns.set(row.at, filled);
    rows.fill(from, filled, filled + row.at.length);
    filled += row.at.length;
  });
  eachBackwards(ids, (id) => writeId(writer, 4, id));
  writer.floats(3, scores);
  writer.uints(2, columns);
  writer.uints(1, rows);
}

function writeScored(writer: WireWriter, field: number, point: PointView): void {
  const end = writer.endOf();
  if (point.orderValue !== undefined) writeOrderValue(writer, 8, point.orderValue);
  if (point.shardKey !== undefined) writeShardKey(writer, 7, point.shardKey);
  if (point.vector !== undefined) writeVectors(writer, 6, point.vector);
  writer.int(5, point.version ?? 0);
  writer.float(3, point.score ?? 0);
  writePayload(writer, point);
  writeId(writer, 1, point.id);
  writer.message(field, end);
}

function writeRecord(writer: WireWriter, field: number, point: PointView): void {
  const end = writer.endOf();
  if (point.orderValue !== undefined) writeOrderValue(writer, 6, point.orderValue);
  if (point.shardKey !== undefined) writeShardKey(writer, 5, point.shardKey);
  if (point.vector !== undefined) writeVectors(writer, 4, point.vector);
  writePayload(writer, point);
  writeId(writer, 1, point.id);
  writer.message(field, end);
}

function writePayload(writer: WireWriter, { payload }: PointView): void {
  if (payload === undefined || payload.length <= 2) return;
  writeValueMap(writer, 2, parseStored(payload) as { [key: string]: JsonValue });
}

function writeId(writer: WireWriter, field: number, id: PointId): void {
  const end = writer.endOf();
  if (typeof id === 'string') writer.string(2, id);
  else writer.int(1, id);
  writer.message(field, end);
}

function writeShardKey(writer: WireWriter, field: number, key: ShardKey): void {
  const end = writer.endOf();
  if (typeof key === 'string') writer.string(1, key);
  else writer.int(2, key);
  writer.message(field, end);
}

function writeOrderValue(writer: WireWriter, field: number, value: number | bigint): void {
  const end = writer.endOf();
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) writer.int(1, value);
  else writer.double(2, value);
  writer.message(field, end);
}

function writeVectors(writer: WireWriter, field: number, view: VectorView): void {
  const end = writer.endOf();
  if (view.kind === 'single') writeVector(writer, 1, view.value);
  else {
    const named = writer.endOf();
    eachBackwards(view.vectors, ({ name, value }) => {
      const entry = writer.endOf();
      writeVector(writer, 2, value);
      writer.string(1, name);
      writer.message(1, entry);
    });
    writer.message(2, named);
  }
  writer.message(field, end);
}

/** A VectorOutput: the field that names the kind, not the deprecated ones, which would double the bytes. */
function writeVector(writer: WireWriter, field: number, vector: VectorValue): void {
  const end = writer.endOf();
  const kind = writer.endOf();
  switch (vector.kind) {
    case 'dense':
      writer.floats(1, vector.values);
      writer.message(101, kind);
      break;
    case 'sparse':
      writer.uints(2, vector.indices);
      writer.floats(1, vector.values);
      writer.message(102, kind);
      break;
    case 'multi':
      writeMulti(writer, vector.values, vector.dim);
      writer.message(103, kind);
      break;
    default:
      vector satisfies never;
  }
  writer.message(field, end);
}

function writeMulti(writer: WireWriter, values: Float32Array, dim: number): void {
  for (let at = values.length - dim; at >= 0; at -= dim) {
    const end = writer.endOf();
    writer.floats(1, values.subarray(at, at + dim));
    writer.message(1, end);
  }
}

function writeGroup(writer: WireWriter, group: GroupView): void {
  const end = writer.endOf();
  if (group.lookup !== undefined) writeRecord(writer, 3, group.lookup);
  eachBackwards(group.hits, (point) => writeScored(writer, 2, point));
  within(writer, 1, () => {
    const { id } = group;
    if (typeof id === 'string') writer.string(3, id);
    else writer.int(id < 0 ? 2 : 1, id);
  });
  writer.message(1, end);
}

function writeFacet(writer: WireWriter, { value, count }: FacetHit): void {
  const end = writer.endOf();
  writer.int(2, count);
  within(writer, 1, () => {
    if (typeof value === 'string') writer.string(1, value);
    else if (typeof value === 'boolean') writer.bool(3, value);
    else writer.int(2, value);
  });
  writer.message(1, end);
}

/** A message of the fields that `write` writes. */
function within(writer: WireWriter, field: number, write: () => void): void {
  const end: MessageEnd = writer.endOf();
  write();
  writer.message(field, end);
}

function eachBackwards<Item>(items: readonly Item[], act: (item: Item) => void): void {
  for (let i = items.length - 1; i >= 0; i--) act(items[i] as Item);
}

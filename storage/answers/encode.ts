/**
 * Writes the `result` of each read operation as JSON bytes. Payloads are kept as JSON text and copied as they are;
 * scores and vectors are float32 and printed as such.
 */

import { stringifyJson } from '../../protocols/json.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { VectorValue } from '../../protocols/model/vector.js';
import { type AnswerLimits, NO_LIMITS } from '../threads/deadline.js';
import { floatText, printVector } from './float-text.js';
import type { DistanceMatrix, MatrixRow } from './read-answer.js';
import type { GroupView, PointView, ReadResult, VectorView } from './result.js';

/**
 * The `result` of an answer as JSON bytes, in a buffer of their own that can be transferred. Errors: those of the limits, which are asked again and
 * again.
 */
export function encodeResult(result: ReadResult, limits: AnswerLimits = NO_LIMITS): Uint8Array {
  const writer = new JsonWriter(limits);
  writeResult(writer, result);
  return writer.finish();
}

function writeResult(writer: JsonWriter, result: ReadResult): void {
  switch (result.kind) {
    case 'points':
      writePoints(writer, result.points);
      return;
    case 'queried':
      writeQueried(writer, result.points);
      return;
    case 'pointLists':
      writer.list(result.lists, (points) => writePoints(writer, points));
      return;
    case 'queriedLists':
      writer.list(result.lists, (points) => writeQueried(writer, points));
      return;
    case 'point':
      writePoint(writer, result.point);
      return;
    case 'scrolled':
      writer.ascii('{"points":');
      writePoints(writer, result.points);
      writer.ascii(`,"next_page_offset":${result.next === null ? 'null' : idText(result.next)}}`);
      return;
    case 'count':
      writer.ascii(`{"count":${result.count}}`);
      return;
    case 'groups':
      writer.ascii('{"groups":');
      writer.list(result.groups, (group) => writeGroup(writer, group));
      writer.ascii('}');
      return;
    case 'facet':
      writer.ascii('{"hits":');
      writer.list(result.hits, ({ value, count }) => {
        writer.text(`{"value":${typeof value === 'string' ? JSON.stringify(value) : value},"count":${count}}`);
      });
      writer.ascii('}');
      return;
    case 'matrixPairs':
      writePairs(writer, result.matrix);
      return;
    case 'matrixOffsets':
      writeOffsets(writer, result.matrix);
      return;
    default:
      result satisfies never;
  }
}

function writePairs(writer: JsonWriter, { ids, neighbours }: DistanceMatrix): void {
  const names = ids.map(idText);
  writer.ascii('{"pairs":');
  writer.list(eachPair(neighbours), ({ from, at, score }) => {
    writer.ascii(`{"a":${names[from]},"b":${names[at]},"score":${floatText(score)}}`);
  });
  writer.ascii('}');
}

function writeOffsets(writer: JsonWriter, { ids, neighbours }: DistanceMatrix): void {
  writer.ascii('{"offsets_row":');
  writer.list(eachPair(neighbours), ({ from }) => writer.ascii(String(from)));
  writer.ascii(',"offsets_col":');
  writer.list(eachPair(neighbours), ({ at }) => writer.ascii(String(at)));
  writer.ascii(',"scores":');
  writer.list(eachPair(neighbours), ({ score }) => writer.ascii(floatText(score)));
  writer.ascii(',"ids":');
  writer.list(ids, (id) => writer.ascii(idText(id)));
  writer.ascii('}');
}

function* eachPair(neighbours: readonly MatrixRow[]): Generator<{ from: number; at: number; score: number }> {
  for (let from = 0; from < neighbours.length; from++) {
    const { at, scores } = neighbours[from] as MatrixRow;
    for (let i = 0; i < at.length; i++) yield { from, at: at[i] as number, score: scores[i] as number };
  }
}

function writeQueried(writer: JsonWriter, points: Iterable<PointView>): void {
  writer.ascii('{"points":');
  writePoints(writer, points);
  writer.ascii('}');
}

function writeGroup(writer: JsonWriter, group: GroupView): void {
  writer.text(`{"hits":`);
  writePoints(writer, group.hits);
  writer.text(`,"id":${stringifyJson(group.id)}`);
  if (group.lookup !== undefined) {
    writer.ascii(',"lookup":');
    writePoint(writer, group.lookup);
  }
  writer.ascii('}');
}

function writePoints(writer: JsonWriter, points: Iterable<PointView>): void {
  writer.list(points, (point) => writePoint(writer, point));
}

function writePoint(writer: JsonWriter, point: PointView): void {
  writer.ascii(`{"id":${idText(point.id)}`);
  if (point.version !== undefined) writer.ascii(`,"version":${point.version}`);
  if (point.score !== undefined) writer.ascii(`,"score":${floatText(point.score)}`);
  if (point.payload !== undefined) {
    writer.ascii(',"payload":');
    writer.bytes(point.payload);
  }
  if (point.vector !== undefined) {
    writer.ascii(',"vector":');
    writeVectors(writer, point.vector);
  }
  if (point.shardKey !== undefined) writer.text(`,"shard_key":${stringifyJson(point.shardKey)}`);
  if (point.orderValue !== undefined) writer.ascii(`,"order_value":${point.orderValue}`);
  writer.ascii('}');
}

function writeVectors(writer: JsonWriter, vector: VectorView): void {
  if (vector.kind === 'single') {
    writeVector(writer, vector.value);
    return;
  }
  writer.ascii('{');
  vector.vectors.forEach(({ name, value }, index) => {
    writer.text(`${index === 0 ? '' : ','}${JSON.stringify(name)}:`);
    writeVector(writer, value);
  });
  writer.ascii('}');
}

function writeVector(writer: JsonWriter, vector: VectorValue): void {
  switch (vector.kind) {
    case 'dense':
      writer.floats(vector.values);
      return;
    case 'sparse':
      writer.ascii(`{"indices":[${vector.indices.join()}],"values":`);
      writer.floats(vector.values);
      writer.ascii('}');
      return;
    case 'multi': {
      const { dim, values } = vector;
      let separator = '[';
      for (let at = 0; at < values.length; at += dim) {
        writer.ascii(separator);
        writer.floats(values.subarray(at, at + dim));
        separator = ',';
      }
      writer.ascii(']');
      return;
    }
    default:
      vector satisfies never;
  }
}

function idText(id: PointId): string {
  return typeof id === 'string' ? `"${id}"` : id.toString();
}

/** Items of lists that are printed between two checks of the deadline. */
const CHECK_ITEMS = 1024;
/** An answer is written in one go, so all take turns with one buffer. One that a large answer needs is not kept. */
const KEPT_BYTES_MAX = 1 << 18;
let kept = Buffer.allocUnsafeSlow(1024);
const CLOSE_LIST = 0x5d;

/** Grows as needed. ASCII text is gathered and written in one go. */
class JsonWriter {
  private buffer = kept;
  private length = 0;
  private pending = '';
  private printed = 0;

  constructor(private readonly limits: AnswerLimits) {}

  ascii(text: string): void {
    this.pending += text;
    if (this.pending.length > 8192) this.flush();
  }

  text(text: string): void {
    this.flush();
    const bytes = Buffer.byteLength(text);
    this.reserve(bytes);
    this.length += this.buffer.write(text, this.length, 'utf8');
  }

  bytes(bytes: Uint8Array): void {
    this.flush();
    this.reserve(bytes.length);
    this.buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** A list of float32 numbers. */
  floats(values: Float32Array): void {
    this.ascii(values.length === 0 ? '[]' : '[');
    if (values.length === 0) return;
    this.flush();
    printVector(values, (bytes, start, end) => {
      this.reserve(end - start);
      bytes.copy(this.buffer, this.length, start, end);
      this.length += end - start;
    });
    // In place of the last comma.
    this.buffer[this.length - 1] = CLOSE_LIST;
  }

  list<Item>(items: Iterable<Item>, write: (item: Item) => void): void {
    let separator = '[';
    for (const item of items) {
      if (++this.printed % CHECK_ITEMS === 0) this.limits.check();
      this.ascii(separator);
      separator = ',';
      write(item);
    }
    this.ascii(separator === '[' ? '[]' : ']');
  }

  /** The bytes, in a buffer of their own that can be transferred. */
  finish(): Uint8Array {
    this.flush();
    if (this.buffer.length <= KEPT_BYTES_MAX) kept = this.buffer;
    this.limits.check();
    this.limits.hold(this.length);
    return new Uint8Array(this.buffer.buffer.slice(0, this.length));
  }

  private flush(): void {
    if (this.pending.length === 0) return;
    this.reserve(this.pending.length);
    this.length += this.buffer.write(this.pending, this.length, 'latin1');
    this.pending = '';
  }

  private reserve(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.buffer.length) return;
    const size = Math.max(needed, this.buffer.length * 2);
    this.limits.check();
    this.limits.hold(size - this.buffer.length);
    const larger = Buffer.allocUnsafeSlow(size);
    larger.set(this.buffer.subarray(0, this.length));
    this.buffer = larger;
  }
}

/**
 * Writes the `result` of each read operation as JSON bytes. Payloads are kept as JSON text and copied as they are;
 * scores and vectors are float32 and printed as such.
 */

import type { VectorParams } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { floatText, vectorText } from './float-text.js';

/** A point of an answer: what is undefined is left out. */
export interface PointView {
  readonly id: PointId;
  readonly version?: number;
  readonly score?: number;
  /** JSON text, UTF-8. */
  readonly payload?: Uint8Array;
  readonly vector?: VectorView;
}

/** The unnamed vector, or vectors by name; a point without the unnamed vector has the empty object. */
export type VectorView =
  | { readonly kind: 'single'; readonly values: Float32Array }
  | { readonly kind: 'named'; readonly vectors: readonly { readonly name: string; readonly values: Float32Array }[] };

/** `[point, …]`: retrieve and search. */
export function encodePoints(points: Iterable<PointView>): Uint8Array {
  const writer = new JsonWriter();
  writePoints(writer, points);
  return writer.finish();
}

/** `{"points":[…]}`: query. */
export function encodeQueryResult(points: Iterable<PointView>): Uint8Array {
  const writer = new JsonWriter();
  writeQueryResult(writer, points);
  return writer.finish();
}

/** `[[point, …], …]`: search batch. */
export function encodePointLists(lists: Iterable<Iterable<PointView>>): Uint8Array {
  const writer = new JsonWriter();
  writer.list(lists, (points) => writePoints(writer, points));
  return writer.finish();
}

/** `[{"points":[…]}, …]`: query batch. */
export function encodeQueryResults(lists: Iterable<Iterable<PointView>>): Uint8Array {
  const writer = new JsonWriter();
  writer.list(lists, (points) => writeQueryResult(writer, points));
  return writer.finish();
}

/** A single point: get. */
export function encodePoint(point: PointView): Uint8Array {
  const writer = new JsonWriter();
  writePoint(writer, point);
  return writer.finish();
}

/** `{"points":[…],"next_page_offset":id or null}`: scroll. */
export function encodeScroll(points: Iterable<PointView>, next: PointId | null): Uint8Array {
  const writer = new JsonWriter();
  writer.ascii('{"points":');
  writePoints(writer, points);
  writer.ascii(`,"next_page_offset":${next === null ? 'null' : idText(next)}}`);
  return writer.finish();
}

/** `{"count":n}`. */
export function encodeCount(count: number): Uint8Array {
  const writer = new JsonWriter();
  writer.ascii(`{"count":${count}}`);
  return writer.finish();
}

/** Score as the API shows it: the distance itself where less is better. raw: higher is better (see `kernel-api.ts`). */
export function shownScore(distance: VectorParams['distance'], raw: number): number {
  switch (distance) {
    case 'Euclid':
      return Math.fround(Math.sqrt(-raw));
    case 'Manhattan':
      return -raw;
    default:
      return raw;
  }
}

function writeQueryResult(writer: JsonWriter, points: Iterable<PointView>): void {
  writer.ascii('{"points":');
  writePoints(writer, points);
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
    writeVector(writer, point.vector);
  }
  writer.ascii('}');
}

function writeVector(writer: JsonWriter, vector: VectorView): void {
  if (vector.kind === 'single') {
    writer.ascii(vectorText(vector.values));
    return;
  }
  writer.ascii('{');
  vector.vectors.forEach(({ name, values }, index) => {
    writer.text(`${index === 0 ? '' : ','}${JSON.stringify(name)}:`);
    writer.ascii(vectorText(values));
  });
  writer.ascii('}');
}

function idText(id: PointId): string {
  return typeof id === 'string' ? `"${id}"` : id.toString();
}

const FIRST_BYTES = 1024;

/** Grows as needed. ASCII text is gathered and written in one go. */
class JsonWriter {
  private buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  private length = 0;
  private pending = '';

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

  list<Item>(items: Iterable<Item>, write: (item: Item) => void): void {
    let separator = '[';
    for (const item of items) {
      this.ascii(separator);
      separator = ',';
      write(item);
    }
    this.ascii(separator === '[' ? '[]' : ']');
  }

  /** The bytes, in a buffer of their own that can be transferred. */
  finish(): Uint8Array {
    this.flush();
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
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.buffer.length * 2));
    larger.set(this.buffer.subarray(0, this.length));
    this.buffer = larger;
  }
}

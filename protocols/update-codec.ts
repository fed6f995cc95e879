/**
 * Update operations as bytes: what the WAL stores (and other replicas will receive). A header says what the operation
 * is; vectors and payloads of a batch follow as columns, so that reading one takes no parsing of numbers.
 *
 * | bytes      | what |
 * |------------|------|
 * | 0..4       | magic `TOP1` |
 * | 4..8       | bytes of the header, u32 LE |
 * | 8..        | header: JSON, padded with spaces to 8 bytes |
 * | then       | columns, each padded with zeros to 8 bytes: per vector the point numbers (u32; absent for all points), of multivectors and sparse vectors the items of each point (u32), of sparse vectors the indices (u32), the values (f32); then payload offsets (u32 [n + 1]) and payload texts |
 *
 * All numbers are little-endian.
 */

import { TroupeError } from './errors.js';
import { parseStored, stringifyJson } from './json.js';
import type { JsonValue, Payload } from './model/payload.js';
import { type PointId, pointIdFrom } from './model/point-id.js';
import type { BatchColumn, PointBatch, UpdateOperation } from './model/update.js';
import type { HardwareUsage } from './model/usage.js';

/** An operation and how it hangs together with its neighbours in the log. */
export interface LoggedOperation {
  readonly operation: UpdateOperation;
  /** Part of a request with the operation before it: not applied when that one failed or was not applied itself. */
  readonly chained: boolean;
  /** Not logged: what applying it costs is added to this. */
  readonly usage?: HardwareUsage;
  /** The bytes that it was decoded from: they need not be made again. */
  readonly encoded?: Uint8Array | undefined;
}

/** An operation that changes no point: a log has it where an operation failed, and as a barrier (Log-L12). */
export const NOTHING: LoggedOperation = { operation: { kind: 'deletePoints', selector: { kind: 'ids', ids: [] } }, chained: false };

const MAGIC = 0x3150_4f54;
/** How a header begins. */
const KIND = /^\{"chained":(?:true|false),"operation":\{"kind":"(\w+)"/;
const KIND_BYTES_MAX = 80;

interface ColumnHeader {
  readonly name: string;
  /** Left out for dense vectors. */
  readonly kind?: 'multi' | 'sparse';
  /** 0 for sparse vectors. */
  readonly dim: number;
  /** Points of the column, and whether their numbers are listed. */
  readonly rows: number;
  readonly listed: boolean;
  /** Of all points together: token vectors, components. Left out for dense vectors. */
  readonly items?: number;
}

interface BatchHeader {
  readonly ids: readonly PointId[];
  readonly vectors: readonly ColumnHeader[];
  readonly payloads: boolean;
}

/**
 * The bytes of an operation, with `reserve` bytes free in front (a multiple of 8).
 * room: gives the buffer they go to, which starts at offset 0 of its memory and may hold anything; by default one of their own.
 */
export function encodeUpdate(
  { chained, encoded, operation }: LoggedOperation,
  reserve = 0,
  room: (bytes: number) => Uint8Array = (bytes) => new Uint8Array(bytes),
): Uint8Array {
  if (encoded !== undefined) {
    const copy = room(reserve + encoded.length);
    copy.set(encoded, reserve);
    return copy;
  }
  const columns: Uint8Array[] = [];
  const body = 'batch' in operation ? { ...operation, batch: encodeBatch(operation.batch, columns) } : operation;
  const payload = 'payload' in operation ? operation.payload : undefined;
  const header = Buffer.from(stringifyJson({ chained, operation: body }, payload), 'utf8');
  const headerBytes = align8(header.length);
  const total = columns.reduce((sum, column) => sum + align8(column.byteLength), 8 + headerBytes);
  const bytes = room(reserve + total);
  const view = new DataView(bytes.buffer);
  view.setUint32(reserve, MAGIC, true);
  view.setUint32(reserve + 4, headerBytes, true);
  bytes.fill(0x20, reserve + 8, reserve + 8 + headerBytes);
  bytes.set(header, reserve + 8);
  let at = reserve + 8 + headerBytes;
  for (const column of columns) {
    bytes.set(column, at);
    bytes.fill(0, at + column.byteLength, at + align8(column.byteLength));
    at += align8(column.byteLength);
  }
  return bytes;
}

/** The kind of the operation that `encodeUpdate` made these bytes of, by their first ones; null if they do not tell. */
export function updateKindOf(bytes: Uint8Array): UpdateOperation['kind'] | null {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset + 8, Math.max(0, Math.min(KIND_BYTES_MAX, bytes.length - 8))).toString('latin1');
  return (KIND.exec(start)?.[1] ?? null) as UpdateOperation['kind'] | null;
}

/** The operation that `encodeOperation` made these bytes of. Its vectors are views on `bytes` where these are aligned. Errors: `storage`. */
export function decodeUpdate(bytes: Uint8Array): LoggedOperation {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 8 || view.getUint32(0, true) !== MAGIC) throw new TroupeError('storage', 'not an update operation');
  const headerBytes = view.getUint32(4, true);
  if (8 + headerBytes > bytes.length) throw new TroupeError('storage', 'update operation ends within its header');
  const header = parseStored(bytes.subarray(8, 8 + headerBytes)) as unknown as { chained: boolean; operation: UpdateOperation };
  const { chained } = header;
  if (!('batch' in header.operation)) return { operation: withIds(header.operation), chained };
  const batch = decodeBatch(header.operation.batch as unknown as BatchHeader, new Columns(bytes, 8 + headerBytes));
  return { operation: { ...header.operation, batch }, chained };
}

function encodeBatch(batch: PointBatch, columns: Uint8Array[]): BatchHeader {
  const vectors = batch.vectors.map((column): ColumnHeader => {
    const { kind, name, points, values } = column;
    const listed = points !== null;
    if (listed) columns.push(bytesOf(points));
    if (kind === 'dense') {
      columns.push(bytesOf(values));
      return { name, dim: column.dim, rows: values.length / column.dim, listed };
    }
    columns.push(bytesOf(column.counts));
    if (kind === 'sparse') columns.push(bytesOf(column.indices));
    columns.push(bytesOf(values));
    const dim = kind === 'multi' ? column.dim : 0;
    return { name, kind, dim, rows: column.counts.length, listed, items: kind === 'multi' ? values.length / dim : values.length };
  });
  const payloads = batch.payloads.some((payload) => payload !== undefined);
  if (payloads) encodePayloads(batch.payloads, columns);
  return { ids: batch.ids, vectors, payloads };
}

function encodePayloads(payloads: readonly (Payload | undefined)[], columns: Uint8Array[]): void {
  const offsets = new Uint32Array(payloads.length + 1);
  const texts: string[] = [];
  let at = 0;
  payloads.forEach((payload, index) => {
    offsets[index] = at;
    if (payload === undefined) return;
    const text = stringifyJson(payload);
    texts.push(text);
    at += Buffer.byteLength(text, 'utf8');
  });
  offsets[payloads.length] = at;
  columns.push(bytesOf(offsets), Buffer.from(texts.join(''), 'utf8'));
}

function decodeBatch(header: BatchHeader, columns: Columns): PointBatch {
  const ids = header.ids.map(idOf);
  const vectors = header.vectors.map((column) => decodeColumn(column, columns));
  if (!header.payloads) return { ids, vectors, payloads: new Array(ids.length).fill(undefined) };
  const offsets = columns.uint32(ids.length + 1);
  const text = columns.bytes(offsets[ids.length] as number);
  const payloads = ids.map((_, index) => {
    const from = offsets[index] as number;
    const to = offsets[index + 1] as number;
    return from === to ? undefined : (parseStored(text.subarray(from, to)) as Payload);
  });
  return { ids, vectors, payloads };
}

function decodeColumn({ kind, name, dim, rows, listed, items = 0 }: ColumnHeader, columns: Columns): BatchColumn {
  const points = listed ? columns.uint32(rows) : null;
  if (kind === undefined) return { kind: 'dense', name, dim, points, values: columns.float32(rows * dim) };
  const counts = columns.uint32(rows);
  if (kind === 'multi') return { kind, name, dim, points, counts, values: columns.float32(items * dim) };
  return { kind, name, points, counts, indices: columns.uint32(items), values: columns.float32(items) };
}

/** Reads columns one after the other. */
class Columns {
  constructor(
    private readonly source: Uint8Array,
    private at: number,
  ) {}

  bytes(length: number): Uint8Array {
    if (this.at + length > this.source.length) throw new TroupeError('storage', 'update operation ends within its columns');
    const bytes = this.source.subarray(this.at, this.at + length);
    this.at += align8(length);
    return bytes;
  }

  uint32(length: number): Uint32Array {
    const bytes = this.aligned(length * 4);
    return new Uint32Array(bytes.buffer, bytes.byteOffset, length);
  }

  float32(length: number): Float32Array {
    const bytes = this.aligned(length * 4);
    return new Float32Array(bytes.buffer, bytes.byteOffset, length);
  }

  private aligned(length: number): Uint8Array {
    const bytes = this.bytes(length);
    return bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
  }
}

/** Ids of a decoded header: JSON has numbers, large ones as bigint, already. */
function idOf(value: JsonValue | PointId): PointId {
  const id = pointIdFrom(value);
  if (id === undefined) throw new TroupeError('storage', 'update operation holds no valid point id');
  return id;
}

function withIds(operation: UpdateOperation): UpdateOperation {
  if (!('selector' in operation) || operation.selector.kind !== 'ids') return operation;
  return { ...operation, selector: { kind: 'ids', ids: operation.selector.ids.map(idOf) } };
}

function bytesOf(values: Uint32Array | Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function align8(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

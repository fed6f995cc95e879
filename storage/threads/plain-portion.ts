/**
 * The most frequent portions and answers as plain bytes, between readers of one release or a later one: packing and unpacking them as objects costs
 * five times as much. Whatever has another form is packed (`portion-codec.ts`). Numbers are little endian, and what is 8 bytes long stands at a
 * multiple of 8.
 *
 *     portion: 0xc1, kind, flags, 0, then
 *       level  1: u32 count, u32 ef, u32 bytes of the vector's name, f64 oversampling, f64 threshold, u32 floats, u32 bytes of the filter, floats,
 *                 name, filter as MessagePack
 *       points 2: u32 shards, then for each u32 shard, u32 ids, ids as f64
 *       count  3: u32 bytes of the filter, filter as MessagePack
 *     answer: 0xc1, kind, form of ids, shown, then
 *       hits  1: u32 hits, f64 total, scores and versions as f64, ids as f64 or 36 letters each, shards as u32, lengths of payloads as u32, payloads
 *       count 3: 4 bytes of 0, f64 count
 */

import { TroupeError } from '../../protocols/errors.js';
import type { Filter } from '../../protocols/model/filter.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { pack, unpack } from '../../protocols/pack.js';
import type { Extras, Hits, LevelAsk, PointsAsk, Portion, PortionAnswer, ShardPoints, ShownParts } from './portion.js';

/** What is packed as MessagePack never begins with this byte. */
const PLAIN = 0xc1;
const LEVEL = 1;
const POINTS = 2;
const COUNT = 3;
const HITS = 1;
const LEVEL_BYTES = 40;
const HITS_BYTES = 16;
const NUMBERS = 0;
const UUIDS = 1;
const UUID_BYTES = 36;
/** In the place of a number of 32 bits: null. */
const NONE = 0xffff_ffff;

const EXACT = 1;
const INDEXED_ONLY = 2;
const IGNORE_QUANTIZATION = 4;
const RESCORE = 8;
const NO_RESCORE = 16;
const WITH_PAYLOAD = 32;

export function isPlain(bytes: Uint8Array): boolean {
  return bytes[0] === PLAIN;
}

/** Null: the portion has another form. */
export function encodePlainPortion({ asks, explain }: Portion): Uint8Array | null {
  const [ask] = asks;
  if (ask === undefined || asks.length !== 1 || explain === true) return null;
  if (ask.kind === 'level') return encodeLevel(ask);
  if (ask.kind === 'points') return encodePoints(ask);
  return ask.kind === 'count' ? encodeCount(packedFilter(ask.filter)) : null;
}

/** bytes: a plain portion. Errors: `wrongInput` for bytes that are none. */
export function decodePlainPortion(bytes: Uint8Array): Portion {
  return checked(bytes, (buffer) => {
    switch (buffer[1]) {
      case LEVEL:
        return { asks: [decodeLevel(buffer)] };
      case POINTS:
        return { asks: [decodePoints(buffer)] };
      case COUNT:
        return { asks: [{ kind: 'count', filter: filterAt(buffer, 8, buffer.readUInt32LE(4)) }] };
      default:
        throw new Error(`a portion of the unknown kind ${buffer[1]}`);
    }
  });
}

/** In memory of its own; null: the answer has another form. */
export function encodePlainAnswer({ answers, explanation }: PortionAnswer): Uint8Array | null {
  const [answer] = answers;
  if (answer === undefined || answers.length !== 1 || explanation !== undefined) return null;
  if (answer.kind === 'hits') return encodeHits(answer);
  if (answer.kind !== 'count') return null;
  const bytes = begun(HITS_BYTES, COUNT, 0);
  bytes.writeDoubleLE(answer.count, 8);
  return bytes;
}

/** bytes: a plain answer, whose memory is used. Errors: `wrongInput` for bytes that are none. */
export function decodePlainAnswer(bytes: Uint8Array): PortionAnswer {
  return checked(bytes, (buffer) => {
    if (buffer[1] === HITS) return { answers: [decodeHits(buffer)] };
    if (buffer[1] === COUNT) return { answers: [{ kind: 'count', count: buffer.readDoubleLE(8) }] };
    throw new Error(`an answer of the unknown kind ${buffer[1]}`);
  });
}

function checked<Result>(bytes: Uint8Array, decode: (buffer: Buffer) => Result): Result {
  try {
    return decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  } catch (error) {
    throw new TroupeError('wrongInput', `not what a node says about its points: ${(error as Error).message}`);
  }
}

function begun(length: number, kind: number, flags: number): Buffer {
  // Memory of its own: threads give it away.
  const bytes = Buffer.allocUnsafeSlow(length);
  bytes.fill(0, 0, Math.min(length, HITS_BYTES));
  bytes[0] = PLAIN;
  bytes[1] = kind;
  bytes[2] = flags;
  return bytes;
}

// ------------------------------------------------------------------ portions

function encodeLevel({ candidates, count, extras, filter, params, query, scoreThreshold, terms, using }: LevelAsk): Uint8Array | null {
  if (query.kind !== 'nearest' || query.value.kind !== 'dense' || query.own !== null || candidates !== null || terms !== null) return null;
  const { exact, hnswEf, indexedOnly, quantization } = params;
  const shown = flagsOf(extras);
  if (shown === null || count >= NONE || (hnswEf ?? 0) >= NONE) return null;
  const { values } = query.value;
  const packed = packedFilter(filter);
  const nameBytes = Buffer.byteLength(using);
  const flags =
    shown |
    (exact ? EXACT : 0) |
    (indexedOnly ? INDEXED_ONLY : 0) |
    (quantization.ignore ? IGNORE_QUANTIZATION : 0) |
    (quantization.rescore === null ? 0 : quantization.rescore ? RESCORE : NO_RESCORE);
  const nameAt = LEVEL_BYTES + values.byteLength;
  const bytes = begun(nameAt + nameBytes + packed.length, LEVEL, flags);
  bytes.writeUInt32LE(count, 4);
  bytes.writeUInt32LE(hnswEf ?? NONE, 8);
  bytes.writeUInt32LE(nameBytes, 12);
  bytes.writeDoubleLE(quantization.oversampling ?? Number.NaN, 16);
  bytes.writeDoubleLE(scoreThreshold ?? Number.NaN, 24);
  bytes.writeUInt32LE(values.length, 32);
  bytes.writeUInt32LE(packed.length, 36);
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), LEVEL_BYTES);
  bytes.write(using, nameAt);
  bytes.set(packed, nameAt + nameBytes);
  return bytes;
}

function decodeLevel(bytes: Buffer): LevelAsk {
  const flags = bytes[2] as number;
  const hnswEf = bytes.readUInt32LE(8);
  const nameAt = LEVEL_BYTES + 4 * bytes.readUInt32LE(32);
  const filterAtByte = nameAt + bytes.readUInt32LE(12);
  if (filterAtByte > bytes.length) throw new Error('it is too short');
  const values = new Float32Array((nameAt - LEVEL_BYTES) / 4);
  new Uint8Array(values.buffer).set(bytes.subarray(LEVEL_BYTES, nameAt));
  return {
    kind: 'level',
    query: { kind: 'nearest', value: { kind: 'dense', values }, own: null },
    using: bytes.toString('utf8', nameAt, filterAtByte),
    filter: filterAt(bytes, filterAtByte, bytes.readUInt32LE(36)),
    params: {
      hnswEf: hnswEf === NONE ? null : hnswEf,
      exact: (flags & EXACT) !== 0,
      indexedOnly: (flags & INDEXED_ONLY) !== 0,
      quantization: {
        ignore: (flags & IGNORE_QUANTIZATION) !== 0,
        rescore: (flags & (RESCORE | NO_RESCORE)) === 0 ? null : (flags & RESCORE) !== 0,
        oversampling: numberOrNull(bytes.readDoubleLE(16)),
      },
    },
    scoreThreshold: numberOrNull(bytes.readDoubleLE(24)),
    count: bytes.readUInt32LE(4),
    candidates: null,
    terms: null,
    extras: extrasOf(flags),
  };
}

function encodePoints({ extras, points }: PointsAsk): Uint8Array | null {
  const flags = flagsOf(extras);
  if (flags === null || !points.every(({ ids }) => ids.every((id) => typeof id === 'number'))) return null;
  const length = points.reduce((sum, { ids }) => sum + 8 + 8 * ids.length, 8);
  const bytes = begun(length, POINTS, flags);
  let at = bytes.writeUInt32LE(points.length, 4);
  for (const { ids, shard } of points) {
    at = bytes.writeUInt32LE(shard ?? NONE, at);
    at = bytes.writeUInt32LE(ids.length, at);
    for (const id of ids) at = bytes.writeDoubleLE(id as number, at);
  }
  return bytes;
}

function decodePoints(bytes: Buffer): PointsAsk {
  const points: ShardPoints[] = [];
  let at = 8;
  for (let left = bytes.readUInt32LE(4); left > 0; left--) {
    const shard = bytes.readUInt32LE(at);
    const end = at + 8 + 8 * bytes.readUInt32LE(at + 4);
    const ids: PointId[] = [];
    for (at += 8; at < end; at += 8) ids.push(bytes.readDoubleLE(at));
    points.push({ shard: shard === NONE ? null : shard, ids });
  }
  return { kind: 'points', points, extras: extrasOf(bytes[2] as number) };
}

function encodeCount(packed: Uint8Array): Uint8Array {
  const bytes = begun(8 + packed.length, COUNT, 0);
  bytes.writeUInt32LE(packed.length, 4);
  bytes.set(packed, 8);
  return bytes;
}

/** Null: more is to be shown than payloads. */
function flagsOf({ groupBy, withPayload, withVector }: Extras): number | null {
  if (groupBy !== null || withVector.kind !== 'none') return null;
  if (withPayload.kind === 'none') return 0;
  return withPayload.kind === 'all' ? WITH_PAYLOAD : null;
}

function extrasOf(flags: number): Extras {
  return { withPayload: { kind: (flags & WITH_PAYLOAD) === 0 ? 'none' : 'all' }, withVector: { kind: 'none' }, groupBy: null };
}

const NO_FILTER = new Uint8Array(0);

function packedFilter(filter: Filter | null): Uint8Array {
  return filter === null ? NO_FILTER : pack(filter);
}

function filterAt(bytes: Buffer, at: number, length: number): Filter | null {
  if (at + length > bytes.length) throw new Error('it is too short');
  return length === 0 ? null : (unpack(bytes.subarray(at, at + length)) as Filter);
}

function numberOrNull(number: number): number | null {
  return Number.isNaN(number) ? null : number;
}

// ------------------------------------------------------------------ answers

function encodeHits({ groups, ids, orderValues, scores, shards, shown, total, versions }: Hits): Uint8Array | null {
  if (orderValues !== null || groups !== null || shown?.some(({ vector }) => vector !== undefined) === true) return null;
  const form = formOf(ids);
  if (form === null) return null;
  const count = ids.length;
  const idBytes = count * (form === NUMBERS ? 8 : UUID_BYTES);
  const payloadBytes = shown?.reduce((sum, { payload }) => sum + (payload?.length ?? 0), 4 * count) ?? 0;
  const bytes = begun(HITS_BYTES + 20 * count + idBytes + payloadBytes, HITS, form);
  bytes[3] = shown === null ? 0 : 1;
  bytes.writeUInt32LE(count, 4);
  let at = bytes.writeDoubleLE(total, 8);
  for (let hit = 0; hit < count; hit++) at = bytes.writeDoubleLE(scores[hit] as number, at);
  for (let hit = 0; hit < count; hit++) at = bytes.writeDoubleLE(versions[hit] as number, at);
  for (const id of ids) at = form === NUMBERS ? bytes.writeDoubleLE(id as number, at) : at + bytes.write(id as string, at, 'latin1');
  for (const shard of shards) at = bytes.writeUInt32LE(shard, at);
  if (shown === null) return bytes;
  for (const { payload } of shown) at = bytes.writeUInt32LE(payload?.length ?? NONE, at);
  for (const { payload } of shown) {
    if (payload === undefined) continue;
    bytes.set(payload, at);
    at += payload.length;
  }
  return bytes;
}

function decodeHits(bytes: Buffer): Hits {
  const count = bytes.readUInt32LE(4);
  const versionsAt = HITS_BYTES + 8 * count;
  const idsAt = versionsAt + 8 * count;
  const shardsAt = idsAt + count * (bytes[2] === NUMBERS ? 8 : UUID_BYTES);
  if (shardsAt + 4 * count > bytes.length) throw new Error('it is too short');
  const ids: PointId[] = [];
  const shards: number[] = [];
  for (let hit = 0; hit < count; hit++) {
    if (bytes[2] === NUMBERS) ids.push(bytes.readDoubleLE(idsAt + 8 * hit));
    else ids.push(bytes.toString('latin1', idsAt + UUID_BYTES * hit, idsAt + UUID_BYTES * (hit + 1)));
    shards.push(bytes.readUInt32LE(shardsAt + 4 * hit));
  }
  return {
    kind: 'hits',
    shards,
    ids,
    scores: doublesAt(bytes, HITS_BYTES, count),
    versions: doublesAt(bytes, versionsAt, count),
    orderValues: null,
    shown: bytes[3] === 0 ? null : payloadsAt(bytes, shardsAt + 4 * count, count),
    groups: null,
    total: bytes.readDoubleLE(8),
  };
}

/** Null: they are of another form, or of several. */
function formOf(ids: readonly PointId[]): number | null {
  if (ids.every((id) => typeof id === 'number')) return NUMBERS;
  return ids.every((id) => typeof id === 'string' && id.length === UUID_BYTES) ? UUIDS : null;
}

function payloadsAt(bytes: Buffer, lengthsAt: number, count: number): ShownParts[] {
  const parts: ShownParts[] = [];
  let at = lengthsAt + 4 * count;
  for (let hit = 0; hit < count; hit++) {
    const length = bytes.readUInt32LE(lengthsAt + 4 * hit);
    if (length === NONE) {
      parts.push({});
      continue;
    }
    if (at + length > bytes.length) throw new Error('it is too short');
    parts.push({ payload: new Uint8Array(bytes.buffer, bytes.byteOffset + at, length) });
    at += length;
  }
  return parts;
}

function doublesAt(bytes: Buffer, at: number, count: number): Float64Array {
  const start = bytes.byteOffset + at;
  if (start % 8 === 0) return new Float64Array(bytes.buffer, start, count);
  const copy = new Float64Array(count);
  new Uint8Array(copy.buffer).set(bytes.subarray(at, at + 8 * count));
  return copy;
}

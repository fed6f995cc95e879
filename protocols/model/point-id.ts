/** Point ids: an unsigned 64-bit integer or a UUID, with one total order (integers before UUIDs). */

/**
 * An external point id.
 * - `number`: a safe unsigned integer;
 * - `bigint`: an unsigned integer beyond 2^53 - 1, up to 2^64 - 1;
 * - `string`: a UUID in lower case with hyphens.
 */
export type PointId = number | bigint | string;

export const ID_KIND_INTEGER = 0;
export const ID_KIND_UUID = 1;

const UINT64_MAX = 0xffff_ffff_ffff_ffffn;
const UUID_HYPHENATED = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const UUID_SIMPLE = /^[0-9a-f]{32}$/i;

/** The id a decoded JSON value stands for, or undefined when it is none. Integers that JSON carried beyond 2^53 arrive as bigint. */
export function pointIdFrom(value: unknown): PointId | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
    case 'bigint':
      if (value < 0n || value > UINT64_MAX) return undefined;
      return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
    case 'string':
      return uuidFrom(value);
    default:
      return undefined;
  }
}

/** The id in a path segment or another text: digits (a plus before them is allowed) are an integer, everything else must be a UUID. */
export function pointIdFromText(text: string): PointId | undefined {
  if (/^\+?\d{1,20}$/.test(text)) return pointIdFrom(BigInt(text));
  return uuidFrom(text);
}

/** Canonical UUID from its hyphenated, simple, braced or URN form; undefined when it is none. */
export function uuidFrom(text: string): string | undefined {
  let body = text;
  if (body.length === 45 && body.slice(0, 9).toLowerCase() === 'urn:uuid:') body = body.slice(9);
  else if (body.length === 38 && body.startsWith('{') && body.endsWith('}')) body = body.slice(1, -1);
  if (UUID_HYPHENATED.test(body)) return body.toLowerCase();
  if (!UUID_SIMPLE.test(body)) return undefined;
  const hex = body.toLowerCase();
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export function idKind(id: PointId): number {
  return typeof id === 'string' ? ID_KIND_UUID : ID_KIND_INTEGER;
}

/**
 * Writes an id as four 32-bit words, most significant first, at `words[at..at+4)`.
 * Words of two ids of one kind compare (unsigned, first difference) as the ids do.
 */
export function writeIdWords(id: PointId, words: Uint32Array, at: number): void {
  if (typeof id === 'string') {
    words[at] = Number.parseInt(id.slice(0, 8), 16);
    words[at + 1] = Number.parseInt(id.slice(9, 13) + id.slice(14, 18), 16);
    words[at + 2] = Number.parseInt(id.slice(19, 23) + id.slice(24, 28), 16);
    words[at + 3] = Number.parseInt(id.slice(28, 36), 16);
    return;
  }
  words[at] = 0;
  words[at + 1] = 0;
  if (typeof id === 'number') {
    words[at + 2] = Math.floor(id / 0x1_0000_0000);
    words[at + 3] = id >>> 0;
  } else {
    words[at + 2] = Number(id >> 32n);
    words[at + 3] = Number(id & 0xffff_ffffn);
  }
}

/** The id whose kind and words (see `writeIdWords`) these are. */
export function readIdWords(kind: number, words: Uint32Array, at: number): PointId {
  if (kind === ID_KIND_UUID) {
    const a = hex8(words[at] as number);
    const b = hex8(words[at + 1] as number);
    const c = hex8(words[at + 2] as number);
    const d = hex8(words[at + 3] as number);
    return `${a}-${b.slice(0, 4)}-${b.slice(4)}-${c.slice(0, 4)}-${c.slice(4)}${d}`;
  }
  const high = words[at + 2] as number;
  const low = words[at + 3] as number;
  if (high < 0x20_0000) return high * 0x1_0000_0000 + low;
  return (BigInt(high) << 32n) | BigInt(low);
}

/** Sort order of ids: integers by value, then UUIDs by their digits. Negative, zero or positive. */
export function compareIds(a: PointId, b: PointId): number {
  const kinds = idKind(a) - idKind(b);
  if (kinds !== 0) return kinds;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function hex8(word: number): string {
  return word.toString(16).padStart(8, '0');
}

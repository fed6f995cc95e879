/**
 * Graphs built by usearch, from its saved file.
 *
 * File of usearch 2.x (package 2.25.3, 32-bit header of the matrix, 64-bit keys, 32-bit slots), little-endian:
 * - rows u32, bytes per row u32, the rows;
 * - head of 64 bytes: «usearch», version u16 × 3, kinds of metric, scalar, key and slot u8 each, ...;
 * - size, m, m0, max level, entry slot: u64 each;
 * - level of each node: i16 [size];
 * - per node: key u64, level i16, then for level 0, 1, ...: count u32 and room for m0 (level 0) or m slots, u32 each.
 */

import { type BuiltGraph, NO_ROW } from './built-graph.js';

const HEAD_BYTES = 64;
const MAGIC = 'usearch';
const MAJOR_VERSION = 2;
const KEY_KIND_U64 = 14;
const SLOT_KIND_U32 = 15;
const LEVEL_MAX = 64;

/** Thrown for a file that isn't a graph of usearch, or a damaged one. */
export class GraphFileError extends Error {
  constructor(what: string) {
    super(`usearch graph: ${what}`);
    this.name = 'GraphFileError';
  }
}

/** Reads a saved index. Every count, level and slot is checked, so that a walk can trust them. */
export function readUsearchGraph(file: Uint8Array): BuiltGraph {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const head = headOffset(view);
  checkHead(view, head);
  const at = head + HEAD_BYTES;
  need(view, at, 40, 'graph header');
  const [size, m, m0, maxLevel, entry] = [0, 8, 16, 24, 32].map((offset) => smallNumber(view, at + offset)) as Five;
  need(view, at + 40, size * 2, 'levels');
  const levels = new Int16Array(size);
  for (let slot = 0; slot < size; slot++) levels[slot] = view.getInt16(at + 40 + slot * 2, true);
  if (size === 0) return emptyGraph(m, m0);
  checkNumbers(size, m, m0, maxLevel, entry, levels);
  return readNodes(view, at + 40 + size * 2, { size, m, m0, maxLevel, entry, levels });
}

type Five = [number, number, number, number, number];

function headOffset(view: DataView): number {
  need(view, 0, 8, 'matrix header');
  const rows = view.getUint32(0, true);
  const rowBytes = view.getUint32(4, true);
  const end = 8 + rows * rowBytes;
  need(view, 0, end, `matrix of ${rows} rows of ${rowBytes} bytes`);
  return end;
}

function checkHead(view: DataView, at: number): void {
  need(view, at, HEAD_BYTES, 'head');
  const magic = Array.from({ length: MAGIC.length }, (_, index) => String.fromCharCode(view.getUint8(at + index))).join('');
  if (magic !== MAGIC) throw new GraphFileError('the head does not start with the magic word');
  const major = view.getUint16(at + 7, true);
  if (major !== MAJOR_VERSION) throw new GraphFileError(`format version ${major} instead of ${MAJOR_VERSION}`);
  const keyKind = view.getUint8(at + 15);
  if (keyKind !== KEY_KIND_U64) throw new GraphFileError(`keys of kind ${keyKind} instead of ${KEY_KIND_U64} (u64)`);
  const slotKind = view.getUint8(at + 16);
  if (slotKind !== SLOT_KIND_U32) throw new GraphFileError(`slots of kind ${slotKind} instead of ${SLOT_KIND_U32} (u32)`);
}

interface Header {
  readonly size: number;
  readonly m: number;
  readonly m0: number;
  readonly maxLevel: number;
  readonly entry: number;
  readonly levels: Int16Array;
}

function checkNumbers(size: number, m: number, m0: number, maxLevel: number, entry: number, levels: Int16Array): void {
  if (m < 1 || m0 < m) throw new GraphFileError(`m ${m} with m0 ${m0}`);
  if (maxLevel > LEVEL_MAX) throw new GraphFileError(`max level ${maxLevel}`);
  if (entry >= size) throw new GraphFileError(`entry slot ${entry} of ${size}`);
  for (let slot = 0; slot < size; slot++) {
    const level = levels[slot] as number;
    if (level < 0 || level > maxLevel) throw new GraphFileError(`slot ${slot} has level ${level}, the graph ${maxLevel}`);
  }
  if (levels[entry] !== maxLevel) throw new GraphFileError(`entry slot ${entry} has level ${levels[entry]} instead of ${maxLevel}`);
}

function readNodes(view: DataView, start: number, header: Header): BuiltGraph {
  const { size, m, m0, levels } = header;
  const keys = new Uint32Array(size);
  // Lists of all nodes, one after the other: per level a count, then the slots.
  const offsets = new Uint32Array(size);
  let words = 0;
  for (let slot = 0; slot < size; slot++) {
    offsets[slot] = words;
    words += 1 + m0 + (levels[slot] as number) * (1 + m);
  }
  need(view, start, size * 10 + words * 4, 'nodes');
  const lists = new Uint32Array(words);
  let at = start;
  for (let slot = 0; slot < size; slot++) {
    keys[slot] = smallNumber(view, at);
    const level = view.getInt16(at + 8, true);
    if (level !== levels[slot]) throw new GraphFileError(`slot ${slot} has level ${level} and ${levels[slot]}`);
    at = readLists(view, at + 10, slot, header, lists, offsets[slot] as number);
  }
  return {
    ...header,
    keys,
    neighbours: (slot, level) => {
      const list = (offsets[slot] as number) + (level === 0 ? 0 : 1 + m0 + (level - 1) * (1 + m));
      return lists.subarray(list + 1, list + 1 + (lists[list] as number));
    },
  };
}

/** Copies the lists of one node to `lists` from word `to`. Returns where the next node starts. */
function readLists(view: DataView, start: number, slot: number, header: Header, lists: Uint32Array, to: number): number {
  let at = start;
  let out = to;
  for (let level = 0; level <= (header.levels[slot] as number); level++) {
    const room = level === 0 ? header.m0 : header.m;
    const count = view.getUint32(at, true);
    if (count > room) throw new GraphFileError(`slot ${slot} has ${count} neighbours on level ${level}, where ${room} fit`);
    lists[out] = count;
    for (let index = 1; index <= count; index++) {
      const neighbour = view.getUint32(at + index * 4, true);
      if (neighbour >= header.size) throw new GraphFileError(`slot ${slot} has neighbour ${neighbour} of ${header.size} slots`);
      if ((header.levels[neighbour] as number) < level) {
        throw new GraphFileError(`slot ${slot} has neighbour ${neighbour} on level ${level}, above that one's levels`);
      }
      lists[out + index] = neighbour;
    }
    at += 4 + room * 4;
    out += 1 + room;
  }
  return at;
}

function emptyGraph(m: number, m0: number): BuiltGraph {
  return {
    size: 0,
    m,
    m0,
    maxLevel: 0,
    entry: NO_ROW,
    keys: new Uint32Array(0),
    levels: new Int16Array(0),
    neighbours: () => new Uint32Array(0),
  };
}

/** A u64 that has to be below 2^32. All bits set (no entry, no level) reads as 0xffffffff. */
function smallNumber(view: DataView, at: number): number {
  const low = view.getUint32(at, true);
  const high = view.getUint32(at + 4, true);
  if (high === 0 || (low === NO_ROW && high === NO_ROW)) return low;
  throw new GraphFileError(`number beyond 32 bits at byte ${at}`);
}

function need(view: DataView, at: number, bytes: number, what: string): void {
  if (at + bytes > view.byteLength) throw new GraphFileError(`file of ${view.byteLength} bytes ends within the ${what}`);
}

/** Builds the index of one payload field of a sealed segment. */

import type { FieldSchema, FieldType } from '../../../protocols/model/collection.js';
import { type JsonPath, pathOf } from '../../../protocols/model/json-path.js';
import type { Payload } from '../../../protocols/model/payload.js';
import { countBits, setBit } from '../../../query/filter/bits.js';
import { type IndexTerm, MARKS, rowTerms } from '../../../query/filter/lookup.js';
import { cellOf } from '../../../query/geo/cells.js';
import { FLAG_ROUNDED, HEAD_WORDS, hasText, INDEX_VERSION, indexLayout, isNumeric, TYPE_CODES } from '../index-layout.js';

/** Terms and rows in the order they were met. */
interface Entries {
  /** Numeric types: the value of each entry (its cell); others: the number of its term. */
  readonly values: GrowingList;
  readonly rows: GrowingList;
  /** Longitude and latitude of each entry of a geo index. */
  readonly places: GrowingList;
  /** Distinct terms of dictionary types, by their number. */
  readonly terms: IndexTerm[];
  rounded: boolean;
}

type Numbers = Float64Array | Uint32Array;

/** A list of numbers that grows. */
class GrowingList {
  private array: Numbers;
  length = 0;

  constructor(private readonly make: (length: number) => Numbers) {
    this.array = make(1024);
  }

  push(value: number): void {
    if (this.length === this.array.length) {
      const larger = this.make(this.array.length * 2);
      larger.set(this.array);
      this.array = larger;
    }
    this.array[this.length++] = value;
  }

  view(): Numbers {
    return this.array.subarray(0, this.length);
  }

  get bytes(): number {
    return this.array.byteLength;
  }
}

const doubles = (length: number): Numbers => new Float64Array(length);
const words = (length: number): Numbers => new Uint32Array(length);

/** A term, its place in a map and in a list, as estimated. */
const TERM_BYTES = 100;

/** The index of the field `key` over so many rows, in the making: `add` for each row, ascending, then `finish`. */
export class FieldIndexBuild {
  private readonly path: JsonPath;
  private readonly marks: readonly Uint32Array[];
  private readonly entries: Entries;
  private readonly addTerm: (row: number, term: IndexTerm) => void;

  constructor(
    private readonly schema: FieldSchema,
    private readonly rows: number,
    key: string,
  ) {
    this.path = pathOf(key);
    this.marks = MARKS.map(() => new Uint32Array((rows + 31) >>> 5));
    const values = new GrowingList(isNumeric(schema.type) ? doubles : words);
    this.entries = { values, rows: new GrowingList(words), places: new GrowingList(doubles), terms: [], rounded: false };
    this.addTerm = isNumeric(schema.type) ? numberAdder(this.entries) : termAdder(this.entries);
  }

  /** payload: undefined or {} for none. */
  add(row: number, payload: Payload | undefined): void {
    const found = rowTerms(this.schema, payload, this.path);
    const isMarked = [found.present, found.null, found.other, found.indexed];
    for (let mark = 0; mark < isMarked.length; mark++) if (isMarked[mark]) setBit(this.marks[mark] as Uint32Array, row);
    for (const term of found.terms) this.addTerm(row, term);
  }

  /** Memory that it takes, about. */
  get bytes(): number {
    const { places, rows, terms, values } = this.entries;
    return values.bytes + rows.bytes + places.bytes + terms.length * TERM_BYTES;
  }

  /** The bytes of its file (see `index-layout.ts`). */
  finish(): SharedArrayBuffer {
    const { type } = this.schema;
    return isNumeric(type) ? packNumbers(type, this.rows, this.marks, this.entries) : packTerms(type, this.rows, this.marks, this.entries);
  }
}

/** As `FieldIndexBuild`, at once. payloadOf: payload of a row, undefined or {} for none; called once per row, ascending. */
export function buildFieldIndex(
  schema: FieldSchema,
  rows: number,
  payloadOf: (row: number) => Payload | undefined,
  key: string,
): SharedArrayBuffer {
  const build = new FieldIndexBuild(schema, rows, key);
  for (let row = 0; row < rows; row++) build.add(row, payloadOf(row));
  return build.finish();
}

function numberAdder(entries: Entries): (row: number, term: IndexTerm) => void {
  return (row, term) => {
    const value = typeof term === 'object' ? cellOf(term) : Number(term);
    if (typeof term === 'object') {
      entries.places.push(term.lon);
      entries.places.push(term.lat);
    }
    if (typeof term === 'bigint' && BigInt(value) !== term) entries.rounded = true;
    // Minus zero is zero.
    entries.values.push(value === 0 ? 0 : value);
    entries.rows.push(row);
  };
}

function termAdder(entries: Entries): (row: number, term: IndexTerm) => void {
  const numbers = new Map<IndexTerm, number>();
  return (row, term) => {
    let number = numbers.get(term);
    if (number === undefined) {
      number = entries.terms.length;
      numbers.set(term, number);
      entries.terms.push(term);
    }
    entries.values.push(number);
    entries.rows.push(row);
  };
}

function packNumbers(type: FieldType, rows: number, marks: readonly Uint32Array[], entries: Entries): SharedArrayBuffer {
  const values = entries.values.view();
  const rowOf = entries.rows.view();
  const order = Uint32Array.from(values, (_, at) => at).sort((a, b) => (values[a] as number) - (values[b] as number) || a - b);
  const sizes = { type, rows, entries: values.length, terms: 0, textBytes: 0 };
  const { buffer, layout } = start(sizes, marks, entries.rounded);
  const postings = new Uint32Array(buffer, layout.postings, values.length);
  const numbers = new Float64Array(buffer, layout.numbers, values.length);
  for (let at = 0; at < order.length; at++) {
    const entry = order[at] as number;
    postings[at] = rowOf[entry] as number;
    numbers[at] = values[entry] as number;
  }
  if (type === 'geo') {
    const from = entries.places.view();
    const places = new Float64Array(buffer, layout.places, values.length * 2);
    order.forEach((entry, at) => {
      places[at * 2] = from[entry * 2] as number;
      places[at * 2 + 1] = from[entry * 2 + 1] as number;
    });
  }
  return buffer;
}

function packTerms(type: FieldType, rows: number, marks: readonly Uint32Array[], entries: Entries): SharedArrayBuffer {
  const keys = entries.terms.map((term) => termBytes(type, term));
  const order = keys.map((_, at) => at).sort((a, b) => Buffer.compare(keys[a] as Uint8Array, keys[b] as Uint8Array));
  const textBytes = hasText(type) ? keys.reduce((sum, key) => sum + key.length, 0) : 0;
  const sizes = { type, rows, entries: entries.values.length, terms: keys.length, textBytes };
  const { buffer, layout } = start(sizes, marks, false);
  const place = new Uint32Array(keys.length);
  order.forEach((term, at) => {
    place[term] = at;
  });
  const starts = new Uint32Array(buffer, layout.starts, keys.length + 1);
  const termOf = entries.values.view();
  for (const term of termOf) (starts[(place[term] as number) + 1] as number)++;
  for (let at = 0; at < keys.length; at++) (starts[at + 1] as number) += starts[at] as number;
  const postings = new Uint32Array(buffer, layout.postings, termOf.length);
  const next = starts.slice();
  const rowOf = entries.rows.view();
  for (let entry = 0; entry < termOf.length; entry++) {
    const at = place[termOf[entry] as number] as number;
    postings[next[at] as number] = rowOf[entry] as number;
    (next[at] as number)++;
  }
  writeDictionary(
    type,
    order.map((term) => keys[term] as Uint8Array),
    buffer,
    layout,
  );
  return buffer;
}

function writeDictionary(
  type: FieldType,
  keys: readonly Uint8Array[],
  buffer: SharedArrayBuffer,
  layout: ReturnType<typeof indexLayout>,
): void {
  const bytes = new Uint8Array(buffer);
  if (hasText(type)) {
    const offsets = new Uint32Array(buffer, layout.textOffsets, keys.length + 1);
    let at = 0;
    keys.forEach((key, term) => {
      bytes.set(key, layout.text + at);
      at += key.length;
      offsets[term + 1] = at;
    });
  } else if (type === 'uuid') {
    const words = new Uint32Array(buffer, layout.uuids, keys.length * 4);
    keys.forEach((key, term) => {
      const view = new DataView(key.buffer, key.byteOffset, 16);
      for (let word = 0; word < 4; word++) words[term * 4 + word] = view.getUint32(word * 4);
    });
  } else {
    // Booleans: which of the two terms are there.
    const words = new Uint32Array(buffer, 0, HEAD_WORDS);
    words[8] = keys.length > 0 ? ((keys[0] as Uint8Array)[0] as number) : 0;
  }
}

/** Bytes that sort as the terms do. */
function termBytes(type: FieldType, term: IndexTerm): Uint8Array {
  if (type === 'bool') return Uint8Array.of(term === true ? 1 : 0);
  return type === 'uuid' ? Buffer.from(String(term).replaceAll('-', ''), 'hex') : Buffer.from(String(term), 'utf8');
}

function start(
  sizes: Parameters<typeof indexLayout>[0],
  marks: readonly Uint32Array[],
  rounded: boolean,
): { buffer: SharedArrayBuffer; layout: ReturnType<typeof indexLayout> } {
  const layout = indexLayout(sizes);
  const buffer = new SharedArrayBuffer(layout.bytes);
  const flags = rounded ? FLAG_ROUNDED : 0;
  const points = countBits(marks[3] as Uint32Array);
  const head = new Uint32Array(buffer, 0, HEAD_WORDS);
  head.set([INDEX_VERSION, TYPE_CODES[sizes.type], flags, sizes.rows, points, sizes.entries, sizes.terms, sizes.textBytes]);
  marks.forEach((bits, at) => {
    new Uint32Array(buffer, layout.marks + at * layout.markWords * 4, layout.markWords).set(bits);
  });
  return { buffer, layout };
}

/** The parts of a sealed field index (see `layout.ts`), wherever its bytes are. */

import { TroupeError } from '../../../protocols/errors.js';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import { countBits } from '../../../query/filter/bits.js';
import { MARKS, type Mark } from '../../../query/filter/lookup.js';
import { HEAD_WORDS, hasText, INDEX_VERSION, type IndexLayout, indexLayout, isNumeric, TYPE_CODES } from '../index-layout.js';
import { type Column, FileColumn, MemoryColumn, type ReadIndex } from './column.js';

/** Keywords that a thread keeps of an index, and how long they may be: some 100 kB. */
const KEPT_KEYWORDS_MAX = 1024;
const KEPT_KEYWORD_LENGTH_MAX = 64;

export class IndexParts {
  readonly flags: number;
  /** Rows with a value of the index's type. */
  readonly points: number;
  readonly entries: number;
  readonly terms: number;
  /** Each indexed row has one posting. */
  readonly isSingle: boolean;
  /** Booleans: the value of the first term. */
  readonly firstBoolean: number;
  readonly postings: Column<Uint32Array>;
  readonly starts: Column<Uint32Array>;
  readonly textOffsets: Column<Uint32Array>;
  readonly text: Column<Uint8Array>;
  readonly uuids: Column<Uint32Array>;
  readonly numbers: Column<Float64Array>;
  readonly places: Column<Float64Array>;
  private readonly layout: IndexLayout;
  private readonly markCounts = new Map<Mark, number>();
  private readonly keywords: string[] = [];

  /**
   * buffer: all bytes, or the resident ones where `read` gives the others.
   * Errors: `storage` when the bytes are of another version, type, or size.
   */
  constructor(
    readonly schema: FieldSchema,
    key: string,
    private readonly buffer: SharedArrayBuffer,
    readonly rows: number,
    read: ReadIndex | null,
  ) {
    const { type } = schema;
    if (buffer.byteLength < HEAD_WORDS * 4) throw damaged(key, 'too short');
    const head = new Uint32Array(buffer, 0, HEAD_WORDS);
    if (head[0] !== INDEX_VERSION) throw damaged(key, `version ${head[0]} is not ${INDEX_VERSION}`);
    if (head[1] !== TYPE_CODES[type] || head[3] !== rows) throw damaged(key, 'of another type or number of rows');
    this.flags = head[2] as number;
    this.points = head[4] as number;
    this.entries = head[5] as number;
    this.terms = head[6] as number;
    this.firstBoolean = head[8] as number;
    const textBytes = head[7] as number;
    // A text may have no token, and others two.
    this.isSingle = type !== 'text' && this.entries === this.points;
    const layout = indexLayout({ type, rows, entries: this.entries, terms: this.terms, textBytes });
    this.layout = layout;
    const wanted = read === null ? layout.bytes : layout.postings;
    if (wanted !== buffer.byteLength) throw damaged(key, `${buffer.byteLength} bytes instead of ${wanted}`);
    const u32 = (at: number, length: number): Column<Uint32Array> =>
      read === null
        ? new MemoryColumn(new Uint32Array(buffer, at, length))
        : new FileColumn(read, at, length, 4, (bytes) => new Uint32Array(bytes));
    const f64 = (at: number, length: number): Column<Float64Array> =>
      read === null
        ? new MemoryColumn(new Float64Array(buffer, at, length))
        : new FileColumn(read, at, length, 8, (bytes) => new Float64Array(bytes));
    const numeric = isNumeric(type);
    const textual = hasText(type);
    this.postings = u32(layout.postings, this.entries);
    this.starts = u32(layout.starts, numeric ? 0 : this.terms + 1);
    this.textOffsets = u32(layout.textOffsets, textual ? this.terms + 1 : 0);
    this.uuids = u32(layout.uuids, type === 'uuid' ? this.terms * 4 : 0);
    this.numbers = f64(layout.numbers, numeric ? this.entries : 0);
    this.places = f64(layout.places, type === 'geo' ? this.entries * 2 : 0);
    const length = textual ? textBytes : 0;
    this.text =
      read === null
        ? new MemoryColumn(new Uint8Array(buffer, layout.text, length))
        : new FileColumn(read, layout.text, length, 1, (bytes) => new Uint8Array(bytes));
  }

  /** Bits of a mark, u32 words; to be read only. */
  mark(mark: Mark): Uint32Array {
    const { marks, markWords } = this.layout;
    return new Uint32Array(this.buffer, marks + MARKS.indexOf(mark) * markWords * 4, markWords);
  }

  markCount(mark: Mark): number {
    let count = this.markCounts.get(mark);
    if (count === undefined) {
      count = countBits(this.mark(mark));
      this.markCounts.set(mark, count);
    }
    return count;
  }

  /** A keyword as a text. Texts of the first terms are kept: making them costs more than counting their rows. */
  keywordOf(term: number): string {
    const known = this.keywords[term];
    if (known !== undefined) return known;
    const { buffer, byteLength, byteOffset } = this.textOf(term);
    const keyword = Buffer.from(buffer, byteOffset, byteLength).toString('utf8');
    if (term < KEPT_KEYWORDS_MAX && keyword.length <= KEPT_KEYWORD_LENGTH_MAX) this.keywords[term] = keyword;
    return keyword;
  }

  /** The bytes of a keyword or token, a copy or not. */
  textOf(term: number): Uint8Array {
    return this.text.slice(this.textOffsets.at(term), this.textOffsets.at(term + 1));
  }
}

function damaged(key: string, reason: string): TroupeError {
  return new TroupeError('storage', `index of field ${key}: ${reason}`);
}

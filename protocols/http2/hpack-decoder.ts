/** Reads header blocks of one connection. Source: RFC 7541. */

import { COMPRESSION_ERROR, ConnectionError } from './frames.js';
import { type Field, fieldOf, HeaderTable, TABLE_BYTES_DEFAULT } from './header-table.js';
import { decodeHuffman } from './huffman.js';

/** Fields of one block: names and values in turn. */
export type FieldList = readonly string[];

/** Above the limit: the block was read, since later blocks build on it, and its fields were dropped. */
export const TOO_LARGE = null;

const INDEXED = 0x80;
const WITH_INDEXING = 0x40;
const TABLE_SIZE = 0x20;
const HUFFMAN = 0x80;
/** No number of a block needs more. */
const NUMBER_MAX = 0xfff_ffff;

export class HpackDecoder {
  private readonly table = new HeaderTable(TABLE_BYTES_DEFAULT);
  private bytes: Buffer = Buffer.alloc(0);
  private at = 0;
  private to = 0;
  private scratch: Buffer = Buffer.allocUnsafe(256);
  /** The last block that left the table alone, and its fields: clients send the same block again and again. */
  private lastBlock: Buffer | null = null;
  private lastFields: FieldList = [];
  private lastVersion = -1;

  /** listBytesMax: of the fields as HPACK counts them. */
  constructor(private readonly listBytesMax: number) {}

  /** The fields of a whole block; the same list again for a block that comes again. Errors: `ConnectionError`. */
  decode(block: Buffer): FieldList | typeof TOO_LARGE {
    const { lastBlock, table } = this;
    if (lastBlock !== null && this.lastVersion === table.version && lastBlock.equals(block)) return this.lastFields;
    const version = table.version;
    const fields = this.read(block);
    if (fields !== TOO_LARGE && version === table.version) {
      this.lastBlock = Buffer.from(block);
      this.lastFields = fields;
      this.lastVersion = version;
    }
    return fields;
  }

  private read(block: Buffer): FieldList | typeof TOO_LARGE {
    this.bytes = block;
    this.at = 0;
    this.to = block.length;
    const fields: string[] = [];
    let listBytes = 0;
    let mayResize = true;
    while (this.at < this.to) {
      const first = block[this.at] as number;
      if ((first & 0xe0) === TABLE_SIZE) {
        if (!mayResize || !this.table.resize(this.number(5))) throw damaged('the size of the table');
        continue;
      }
      mayResize = false;
      const field = this.field(first);
      listBytes += field.bytes;
      if (listBytes <= this.listBytesMax) fields.push(field.name, field.value);
    }
    return listBytes > this.listBytesMax ? TOO_LARGE : fields;
  }

  private field(first: number): Field {
    if ((first & INDEXED) !== 0) return this.indexed(this.number(7));
    const indexing = (first & WITH_INDEXING) !== 0;
    const index = this.number(indexing ? 6 : 4);
    const name = index === 0 ? this.text() : this.indexed(index).name;
    const field = fieldOf(name, this.text());
    if (indexing) this.table.add(field);
    return field;
  }

  private indexed(index: number): Field {
    const field = this.table.get(index);
    if (field === undefined) throw damaged('an index');
    return field;
  }

  private text(): string {
    if (this.at >= this.to) throw damaged('an end');
    const huffman = ((this.bytes[this.at] as number) & HUFFMAN) !== 0;
    const length = this.number(7);
    const from = this.at;
    if (length > this.to - from) throw damaged('a length');
    this.at = from + length;
    if (!huffman) return this.bytes.toString('latin1', from, from + length);
    if (this.scratch.length < 2 * length) this.scratch = Buffer.allocUnsafe(4 * length);
    const decoded = decodeHuffman(this.bytes, from, from + length, this.scratch);
    if (decoded < 0) throw damaged('a text');
    return this.scratch.toString('latin1', 0, decoded);
  }

  /** A number whose first bits are the low ones of the byte at the cursor. Source: RFC 7541, section 5.1. */
  private number(bits: number): number {
    const mask = (1 << bits) - 1;
    let value = (this.bytes[this.at++] as number) & mask;
    if (value < mask) return value;
    for (let shift = 0; ; shift += 7) {
      if (this.at >= this.to || shift > 28) throw damaged('a number');
      const byte = this.bytes[this.at++] as number;
      value += (byte & 0x7f) * 2 ** shift;
      if (value > NUMBER_MAX) throw damaged('a number');
      if (byte < 0x80) return value;
    }
  }
}

function damaged(what: string): ConnectionError {
  return new ConnectionError(COMPRESSION_ERROR, `the header block has ${what} that cannot be read`);
}

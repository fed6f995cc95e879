/** Writes header blocks of one connection: a few fields that come with every answer by number, all others as they are. */

import { FIELD_OVERHEAD_BYTES, fieldOf, STATIC_FIELDS, TABLE_BYTES_DEFAULT } from './header-table.js';
import type { FieldList } from './hpack-decoder.js';

const STATUS_200 = 0x80 | 8;
const INDEXED = 0x80;
const WITH_INDEXING = 0x40;
const EMPTY_TABLE = 0x20;
const SHORT_MAX = 127;
const NOTHING = new Uint8Array(0);

/**
 * Blocks for one connection. usual: fields of nearly every answer, names and values in turn: they enter the peer's table with the
 * first answer and are one byte from then on.
 */
export class HpackEncoder {
  private readonly usualBytes: number;
  private readonly indexed: Uint8Array;
  private sent = false;
  private mayIndex = true;
  /** The peer has made its table smaller: the next block says that it is empty. */
  private owesEmptyTable = false;

  constructor(private readonly usual: FieldList) {
    let bytes = 0;
    for (let at = 0; at < usual.length; at += 2) bytes += fieldOf(usual[at] as string, usual[at + 1] as string).bytes;
    this.usualBytes = bytes;
    this.indexed = indexedBlock(usual);
  }

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
  setTableBytes(bytes: number): void {
    if (bytes >= Math.min(TABLE_BYTES_DEFAULT, this.usualBytes + FIELD_OVERHEAD_BYTES)) return;
    this.mayIndex = false;
    this.owesEmptyTable = true;
  }

  /** What the next block that is sent has to begin with. */
  prefix(): Uint8Array {
    const owed = this.owesEmptyTable;
    this.owesEmptyTable = false;
    return owed ? Uint8Array.of(EMPTY_TABLE) : NOTHING;
  }

  /** `:status: 200` and the usual fields. The block has to be the next one that is sent. */
  usualBlock(): Uint8Array {
    if (this.sent && this.mayIndex) return this.indexed;
    const parts: Uint8Array[] = [this.prefix(), Uint8Array.of(STATUS_200)];
    const { usual } = this;
    for (let at = 0; at < usual.length; at += 2) {
      parts.push(literal(usual[at] as string, usual[at + 1] as string, this.mayIndex ? WITH_INDEXING : 0));
    }
    this.sent = this.mayIndex;
    return Buffer.concat(parts);
  }
}

/** A block of any fields, which is the same on every connection. */
export function literalBlock(fields: FieldList): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < fields.length; at += 2) parts.push(literal(fields[at] as string, fields[at + 1] as string, 0));
  return Buffer.concat(parts);
}

/** The usual fields, once the peer's table has them. The field that came last has the lowest number. */
function indexedBlock({ length }: FieldList): Uint8Array {
  const block = new Uint8Array(1 + length / 2);
  block[0] = STATUS_200;
  for (let field = 0; field < length / 2; field++) block[1 + field] = INDEXED | (STATIC_FIELDS + length / 2 - field);
  return block;
}

/** A field with its name and value as they are, latin1. */
function literal(name: string, value: string, kind: number): Uint8Array {
  return Buffer.concat([Uint8Array.of(kind), lengthOf(name), Buffer.from(name, 'latin1'), lengthOf(value), Buffer.from(value, 'latin1')]);
}

/** Source: RFC 7541, section 5.1. */
function lengthOf({ length }: string): Uint8Array {
  if (length < SHORT_MAX) return Uint8Array.of(length);
  const bytes = [SHORT_MAX];
  let rest = length - SHORT_MAX;
  for (; rest > 127; rest >>>= 7) bytes.push(0x80 | (rest & 127));
  return Uint8Array.from([...bytes, rest]);
}

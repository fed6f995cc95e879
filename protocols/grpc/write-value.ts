/** Writes JSON values as the messages `Value`, `Struct` and `ListValue`. */

import { floatKeysOf } from '../float-marks.js';
import type { JsonValue } from '../model/payload.js';
import type { WireWriter } from './wire-writer.js';

const INT64_MIN = -0x8000_0000_0000_0000n;
const INT64_MAX = 0x7fff_ffff_ffff_ffffn;

/** Members of an object as the entries of a field `map<string, Value>`. */
export function writeValueMap(writer: WireWriter, field: number, members: { readonly [key: string]: JsonValue }): void {
  const keys = Object.keys(members);
  const floats = floatKeysOf(members);
  for (let i = keys.length - 1; i >= 0; i--) {
    const key = keys[i] as string;
    const end = writer.endOf();
    writeValueField(writer, 2, members[key] as JsonValue, floats?.has(key));
    writer.string(1, key);
    writer.message(field, end);
  }
}

/** A field of type `Value`. isFloat: a number was written as a float. */
export function writeValueField(writer: WireWriter, field: number, value: JsonValue, isFloat = false): void {
  const end = writer.endOf();
  if (isFloat && typeof value === 'number') writer.double(2, value);
  else writeValue(writer, value);
  writer.message(field, end);
}

/** Integers beyond 64 bits are doubles. */
function writeValue(writer: WireWriter, value: JsonValue): void {
  switch (typeof value) {
    case 'string':
      writer.string(4, value);
      return;
    case 'boolean':
      writer.bool(5, value);
      return;
    case 'number':
      if (Number.isSafeInteger(value) && !Object.is(value, -0)) writer.int(3, value);
      else writer.double(2, value);
      return;
    case 'bigint':
      if (value >= INT64_MIN && value <= INT64_MAX) writer.int(3, value);
      else writer.double(2, Number(value));
      return;
    default:
      if (value === null) writer.int(1, 0);
      else if (Array.isArray(value)) writeList(writer, value);
      else writeStruct(writer, value);
  }
}

function writeStruct(writer: WireWriter, members: { readonly [key: string]: JsonValue }): void {
  const end = writer.endOf();
  writeValueMap(writer, 1, members);
  writer.message(6, end);
}

function writeList(writer: WireWriter, items: readonly JsonValue[]): void {
  const end = writer.endOf();
  const floats = floatKeysOf(items);
  for (let i = items.length - 1; i >= 0; i--) writeValueField(writer, 1, items[i] as JsonValue, floats?.has(String(i)));
  writer.message(7, end);
}

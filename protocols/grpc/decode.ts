/**
 * Decodes gRPC messages to the values that REST bodies have (`REST_FORMS`), so that one set of decoders checks the
 * requests of both doors. Lists of floats come out as Float32Arrays beside the value (see `RequestValue`).
 *
 * Errors: `malformedBody` for broken bytes, unknown words, NaN and infinities where JSON has numbers, nesting too deep.
 */

import { TroupeError } from '../errors.js';
import { markFloat, markHolder } from '../float-marks.js';
import { setMember } from '../json.js';
import { type JsonValue, PAYLOAD_DEPTH_MAX } from '../model/payload.js';
import type { RequestValue } from '../rest/request-value.js';
import { shortestFloat } from './float.js';
import type { MessageFields, RestForms } from './form.js';
import { REST_FORMS } from './rest-forms.js';
import type { GrpcField, MessageType } from './schema.js';
import { BYTES, brokenMessage, FIXED32, FIXED64, VARINT, WireReader } from './wire-reader.js';
import { enumWord } from './words.js';

/** Deepest nesting of messages. */
const DEPTH_MAX = 256;

export interface DecodeOptions {
  /** What stands in the place of messages; those without one come as they are. */
  readonly forms?: RestForms;
  /** Where the floats are put, as long as they fit; they are the caller's until it decodes with this room again. */
  readonly room?: Float32Array;
}

/** The REST-shaped value of a message's bytes. */
export function decodeMessage(type: MessageType, bytes: Uint8Array, options: DecodeOptions = {}): RequestValue {
  const decoder = new MessageDecoder(bytes, options.forms ?? REST_FORMS, options.room ?? null);
  const value = decoder.message(type, 0) ?? null;
  return { value, vectors: decoder.vectors };
}

class MessageDecoder {
  /** Lists of floats in the order they came. */
  readonly vectors: Float32Array[] = [];
  private readonly reader: WireReader;
  private floatsUsed = 0;
  /** Doubles of JSON values so far that are integral. */
  private integralFloats = 0;
  /** Room of the lists that came in parts, by index. */
  private readonly partial = new Map<number, Float32Array>();

  constructor(
    bytes: Uint8Array,
    private readonly forms: RestForms,
    /** Room for the floats of the whole message: one allocation instead of one for each vector. */
    private floats: Float32Array | null,
  ) {
    this.reader = new WireReader(bytes);
  }

  /** The message between the cursor and the reader's end. */
  message(type: MessageType, depth: number): JsonValue | undefined {
    if (depth > DEPTH_MAX) throw brokenMessage('it is nested too deeply');
    const { reader } = this;
    const fields: MessageFields = {};
    while (reader.at < reader.end) {
      const tag = reader.tag();
      const field = type.byNumber[tag >>> 3];
      if (field === undefined) reader.skip(tag & 7);
      else this.field(field, tag & 7, fields, depth);
    }
    for (const { name, kind, enumName } of type.plain) if (fields[name] === undefined) fields[name] = zeroOf(kind, enumName);
    const form = this.forms[type.name];
    return form === undefined ? (fields as JsonValue) : form(fields, this.vectors);
  }

  private field(field: GrpcField, wireType: number, fields: MessageFields, depth: number): void {
    const { name, label } = field;
    for (const rival of field.rivals) if (fields[rival] !== undefined) fields[rival] = undefined;
    if (label === 'repeated') {
      this.item(field, wireType, fields, depth);
      return;
    }
    if (label === 'map') {
      this.entry(field, wireType, fields, depth);
      return;
    }
    fields[name] = this.value(field, wireType, depth);
  }

  private item(field: GrpcField, wireType: number, fields: MessageFields, depth: number): void {
    const { name, kind } = field;
    if (kind === 'float') {
      this.floatItems(name, wireType, fields);
      return;
    }
    let list = fields[name] as (JsonValue | undefined)[] | undefined;
    if (list === undefined) {
      list = [];
      fields[name] = list as JsonValue[];
    }
    if (wireType !== BYTES || kind === 'string' || kind === 'message') {
      list.push(this.value(field, wireType, depth));
      return;
    }
    const { reader } = this;
    const outer = reader.end;
    reader.end = reader.length();
    const packedType = wireTypeOf(kind);
    while (reader.at < reader.end) list.push(this.value(field, packedType, depth));
    reader.end = outer;
  }

  /** The list becomes `[index of its vector]`. */
  private floatItems(name: string, wireType: number, fields: MessageFields): void {
    const { reader, vectors } = this;
    let values: Float32Array;
    if (wireType === BYTES) values = reader.packedFloats((count) => this.room(count));
    else if (wireType === FIXED32) values = Float32Array.of(reader.float());
    else throw wrongWireType(name, wireType);
    const before = fields[name] as number[] | undefined;
    if (before === undefined) {
      fields[name] = [vectors.length];
      vectors.push(values);
      return;
    }
    // Parts of one list; a sender may write it value by value.
    const index = before[0] as number;
    vectors[index] = this.append(index, vectors[index] as Float32Array, values);
  }

  /** Doubles the room of a list that comes in parts: their number is the sender's choice. */
  private append(index: number, first: Float32Array, second: Float32Array): Float32Array {
    const length = first.length + second.length;
    let room = this.partial.get(index);
    if (room === undefined || room.length < length) {
      room = new Float32Array(length * 2);
      room.set(first);
      this.partial.set(index, room);
    }
    room.set(second, first.length);
    return room.subarray(0, length);
  }

  private room(count: number): Float32Array {
    if (this.floats === null || this.floats.length < this.floatsUsed + count) {
      this.floats = new Float32Array(this.reader.bytes.length >>> 2);
      this.floatsUsed = 0;
    }
    const from = this.floatsUsed;
    this.floatsUsed = from + count;
    return this.floats.subarray(from, from + count);
  }

  private entry(field: GrpcField, wireType: number, fields: MessageFields, depth: number): void {
    if (wireType !== BYTES) throw wrongWireType(field.name, wireType);
    const { reader } = this;
    const outer = reader.end;
    reader.end = reader.length();
    let key = '';
    let value: JsonValue | undefined;
    const { integralFloats } = this;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag === ((1 << 3) | BYTES)) key = reader.string();
      else if (tag >>> 3 === 2) value = this.value(field, tag & 7, depth);
      else reader.skip(tag & 7);
    }
    reader.end = outer;
    let map = fields[field.name] as { [key: string]: JsonValue } | undefined;
    if (map === undefined) {
      map = {};
      fields[field.name] = map;
    }
    if (value === undefined) value = this.absent(field, depth);
    if (value === undefined) return;
    setMember(map, key, value);
    if (this.integralFloats > integralFloats) noteFloat(map, key, value);
  }

  /** What an entry without a value stands for. */
  private absent(field: GrpcField, depth: number): JsonValue | undefined {
    if (field.message === null) return zeroOf(field.kind, field.enumName);
    const { reader } = this;
    const outer = reader.end;
    reader.end = reader.at;
    const value = this.within(field.message, depth);
    reader.end = outer;
    return value;
  }

  private value(field: GrpcField, wireType: number, depth: number): JsonValue | undefined {
    const { reader } = this;
    if (wireType !== wireTypeOf(field.kind)) throw wrongWireType(field.name, wireType);
    switch (field.kind) {
      case 'message': {
        const outer = reader.end;
        reader.end = reader.length();
        const value = this.within(field.message as MessageType, depth);
        reader.end = outer;
        return value;
      }
      case 'string':
        return reader.string();
      case 'uint64':
        return reader.uint64();
      case 'int64':
        return reader.int64();
      case 'uint32':
        return reader.uint32();
      case 'int32':
        return reader.int32();
      case 'bool':
        return reader.bool();
      case 'enum':
        return enumWord(field.enumName, reader.int32());
      case 'float':
        return shortestFloat(finite(reader.float(), field.name));
      case 'double':
        return finite(reader.double(), field.name);
      default:
        return field.kind satisfies never;
    }
  }

  private within(type: MessageType, depth: number): JsonValue | undefined {
    return type.name === 'Value' ? this.jsonValue(0) : this.message(type, depth + 1);
  }

  // ------------------------------------------------------------------ JSON values

  /** A `Value` up to the reader's end. */
  private jsonValue(depth: number): JsonValue {
    if (depth > PAYLOAD_DEPTH_MAX) throw brokenMessage('a value is nested too deeply');
    const { reader } = this;
    let value: JsonValue = null;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      switch (tag) {
        case (1 << 3) | VARINT:
          reader.int32();
          value = null;
          break;
        case (2 << 3) | FIXED64:
          value = finite(reader.double(), 'double_value');
          if (Number.isInteger(value)) this.integralFloats++;
          break;
        case (3 << 3) | VARINT:
          value = reader.int64();
          break;
        case (4 << 3) | BYTES:
          value = reader.string();
          break;
        case (5 << 3) | VARINT:
          value = reader.bool();
          break;
        case (6 << 3) | BYTES:
          value = this.jsonObject(depth);
          break;
        case (7 << 3) | BYTES:
          value = this.jsonList(depth);
          break;
        default:
          reader.skip(tag & 7);
      }
    }
    return value;
  }

  private jsonObject(depth: number): JsonValue {
    const { reader } = this;
    const outer = reader.end;
    reader.end = reader.length();
    const object: { [key: string]: JsonValue } = {};
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag === ((1 << 3) | BYTES)) this.jsonMember(object, depth);
      else reader.skip(tag & 7);
    }
    reader.end = outer;
    return object;
  }

  private jsonMember(object: { [key: string]: JsonValue }, depth: number): void {
    const { reader } = this;
    const outer = reader.end;
    reader.end = reader.length();
    let key = '';
    let value: JsonValue = null;
    const { integralFloats } = this;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag === ((1 << 3) | BYTES)) key = reader.string();
      else if (tag === ((2 << 3) | BYTES)) value = this.nestedValue(depth);
      else reader.skip(tag & 7);
    }
    reader.end = outer;
    setMember(object, key, value);
    if (this.integralFloats > integralFloats) noteFloat(object, key, value);
  }

  private jsonList(depth: number): JsonValue {
    const { reader } = this;
    const outer = reader.end;
    reader.end = reader.length();
    const list: JsonValue[] = [];
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag === ((1 << 3) | BYTES)) {
        const { integralFloats } = this;
        const value = this.nestedValue(depth);
        if (this.integralFloats > integralFloats) noteFloat(list, String(list.length), value);
        list.push(value);
      } else reader.skip(tag & 7);
    }
    reader.end = outer;
    return list;
  }

  private nestedValue(depth: number): JsonValue {
    const { reader } = this;
    const outer = reader.end;
    reader.end = reader.length();
    const value = this.jsonValue(depth + 1);
    reader.end = outer;
    return value;
  }
}

/** Notes that a member is an integral number that came as a double, or has one in it. */
function noteFloat(container: object, key: string, value: JsonValue): void {
  if (typeof value === 'number') markFloat(container, key);
  else markHolder(container);
}

function zeroOf(kind: GrpcField['kind'], enumName: string): JsonValue | undefined {
  switch (kind) {
    case 'string':
      return '';
    case 'bool':
      return false;
    case 'enum':
      return enumWord(enumName, 0);
    case 'message':
      return undefined;
    default:
      return 0;
  }
}

function wireTypeOf(kind: GrpcField['kind']): number {
  switch (kind) {
    case 'message':
    case 'string':
      return BYTES;
    case 'float':
      return FIXED32;
    case 'double':
      return FIXED64;
    default:
      return VARINT;
  }
}

function finite(value: number, name: string): number {
  if (Number.isFinite(value)) return value;
  throw new TroupeError('malformedBody', `\`${name}\`: ${value} is not a finite number`);
}

function wrongWireType(name: string, wireType: number): TroupeError {
  return brokenMessage(`\`${name}\` cannot have wire type ${wireType}`);
}

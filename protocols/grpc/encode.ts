/**
 * Encodes what REST answers about collections as gRPC messages, by the schema and `MESSAGE_FORMS`. Answers with points have
 * writers of their own beside the engine.
 */

import type { JsonValue } from '../model/payload.js';
import { MESSAGE_FORMS } from './message-forms.js';
import type { GrpcField, MessageType } from './schema.js';
import { WireWriter } from './wire-writer.js';
import { enumNumber } from './words.js';
import { writeValueField, writeValueMap } from './write-value.js';

type Fields = { readonly [name: string]: unknown };

/** Bytes of a message, in a buffer of their own. value: the REST value in its place. */
export function encodeMessage(type: MessageType, value: unknown): Uint8Array {
  const writer = new WireWriter();
  writeMessage(writer, type, value);
  return writer.finish();
}

/** Fields that are absent, null or, without presence, zero are not written. */
function writeMessage(writer: WireWriter, type: MessageType, value: unknown): void {
  const form = MESSAGE_FORMS[type.name];
  const fields = (form === undefined ? value : form(value)) as Fields;
  for (let i = type.fields.length - 1; i >= 0; i--) {
    const field = type.fields[i] as GrpcField;
    const member = Object.hasOwn(fields, field.name) ? fields[field.name] : undefined;
    if (member !== undefined && member !== null) writeField(writer, field, member);
  }
}

function writeField(writer: WireWriter, field: GrpcField, value: unknown): void {
  if (field.label === 'repeated') {
    const items = value as readonly unknown[];
    if (field.kind !== 'message' && field.kind !== 'string') throw new Error(`${field.name}: packed lists are not written here`);
    for (let i = items.length - 1; i >= 0; i--) writeValue(writer, field, field.number, items[i]);
    return;
  }
  if (field.label === 'map') {
    writeMap(writer, field, value as Fields);
    return;
  }
  if (field.label === 'plain' && (value === 0 || value === '' || value === false)) return;
  writeValue(writer, field, field.number, value);
}

function writeMap(writer: WireWriter, field: GrpcField, map: Fields): void {
  if (field.message?.name === 'Value') {
    writeValueMap(writer, field.number, map as { readonly [key: string]: JsonValue });
    return;
  }
  for (const key of Object.keys(map).reverse()) {
    const end = writer.endOf();
    writeValue(writer, field, 2, map[key]);
    writer.string(1, key);
    writer.message(field.number, end);
  }
}

function writeValue(writer: WireWriter, field: GrpcField, number: number, value: unknown): void {
  switch (field.kind) {
    case 'message': {
      const type = field.message as MessageType;
      if (type.name === 'Value') {
        writeValueField(writer, number, value as JsonValue);
        return;
      }
      const end = writer.endOf();
      writeMessage(writer, type, value);
      writer.message(number, end);
      return;
    }
    case 'string':
      writer.string(number, String(value));
      return;
    case 'bool':
      writer.bool(number, value === true);
      return;
    case 'enum':
      writer.int(number, enumNumber(field.enumName, value));
      return;
    case 'float':
      writer.float(number, Number(value));
      return;
    case 'double':
      writer.double(number, Number(value));
      return;
    default:
      writer.int(number, value as number | bigint);
  }
}

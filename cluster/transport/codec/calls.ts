/** Calls of peers for each other's replicas, and their replies, as bytes of protocols/peer/peer.proto. Errors: `malformedBody`. */

import { factsForPeer, factsFromPeer } from '../../../protocols/errors.js';
import { brokenMessage, WireReader } from '../../../protocols/grpc/wire-reader.js';
import { WireWriter } from '../../../protocols/grpc/wire-writer.js';
import { pack, unpack } from '../../../protocols/pack.js';
import type { DataCall, DataReply } from '../../data-messages.js';
import { brokenField, isKnownCall } from './call-shapes.js';
import { bytesTag, intTag, readFields, readInt, readMessage, writeEach, writeMessage } from './fields.js';
import { type Hello, readHello, writeHello } from './frames.js';

export interface SaidCall {
  /** Null: it has none, and is from nobody. */
  readonly hello: Hello | null;
  /** Packed, for `unpackCall`. */
  readonly call: Uint8Array;
}

/** call: packed. */
export function encodeCall(hello: Hello, call: Uint8Array): Uint8Array {
  const writer = new WireWriter();
  writer.blob(2, call);
  writeMessage(writer, 1, () => writeHello(writer, hello));
  return writer.finish();
}

export function decodeCall(bytes: Uint8Array): SaidCall {
  const reader = new WireReader(bytes);
  let hello: Hello | null = null;
  let call: Uint8Array = new Uint8Array(0);
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) hello = readMessage(reader, readHello);
    else if (tag === bytesTag(2)) call = reader.blob();
    else return false;
    return true;
  });
  return { hello, call };
}

/** Null when it is of a kind that this release doesn't know. */
export function unpackCall(bytes: Uint8Array): DataCall | null {
  const call = unpack(bytes) as DataCall | null;
  if (typeof call !== 'object' || call === null || typeof call.kind !== 'string') throw brokenMessage('a call has no kind');
  if (!isKnownCall(call.kind)) return null;
  const field = brokenField(call);
  if (field !== null) throw brokenMessage(`a call \`${call.kind}\` whose \`${field}\` is no such thing`);
  return call;
}

export function encodeReply(reply: DataReply): Uint8Array {
  const writer = new WireWriter();
  writer.blob(1, pack(forPeer(reply)));
  return writer.finish();
}

/** Errors: `malformedBody`. */
export function unpackReply(bytes: Uint8Array): DataReply {
  const reply = unpack(bytes) as DataReply | null;
  if (typeof reply !== 'object' || reply === null || typeof reply.kind !== 'string') throw brokenMessage('a reply has no kind');
  if (reply.kind !== 'error') return reply;
  if (typeof reply.error !== 'object' || reply.error === null) throw brokenMessage('an error has no facts');
  return { kind: 'error', error: factsFromPeer(reply.error) };
}

export function decodeReply(bytes: Uint8Array): DataReply {
  const reader = new WireReader(bytes);
  let packed: Uint8Array = new Uint8Array(0);
  readFields(reader, (tag) => {
    if (tag !== bytesTag(1)) return false;
    packed = reader.blob();
    return true;
  });
  return unpackReply(packed);
}

/** What goes over a stream of calls in one write, either way. */
export interface CallFrame {
  /** The caller's first frame has it. */
  readonly hello: Hello | null;
  readonly items: readonly NumberedBytes[];
  /** Of the side that is called: where its readers take streams of calls. Left out: nowhere, or as told before. */
  readonly readerPorts?: readonly number[];
  /** Of the side that is called: it stops. The caller sends no further call, and ends the stream when it has all replies. Left out: false. */
  readonly isFarewell?: boolean;
}

/** A packed call, or the packed reply to the call of that number. */
export interface NumberedBytes {
  readonly number: number;
  readonly bytes: Uint8Array;
}

export function packCall(call: DataCall): Uint8Array {
  return ownCopy(pack(call));
}

export function packReply(reply: DataReply): Uint8Array {
  return ownCopy(pack(forPeer(reply)));
}

export function encodeCallFrame({ hello, items, readerPorts = [], isFarewell = false }: CallFrame): Uint8Array {
  const writer = new WireWriter();
  // It writes from the end.
  if (isFarewell) writer.int(4, 1);
  for (const port of [...readerPorts].reverse()) writer.int(3, port);
  writeEach(writer, 2, items, ({ bytes, number }) => {
    writer.blob(2, bytes);
    writer.int(1, number);
  });
  if (hello !== null) writeMessage(writer, 1, () => writeHello(writer, hello));
  return writer.finish();
}

export function decodeCallFrame(bytes: Uint8Array): CallFrame {
  const reader = new WireReader(bytes);
  const items: NumberedBytes[] = [];
  const readerPorts: number[] = [];
  let hello: Hello | null = null;
  let isFarewell = false as boolean;
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) hello = readMessage(reader, readHello);
    else if (tag === bytesTag(2)) items.push(readMessage(reader, readNumbered));
    else if (tag === intTag(3)) readerPorts.push(reader.uint32());
    else if (tag === intTag(4)) isFarewell = readInt(reader) !== 0;
    else return false;
    return true;
  });
  return { hello, items, ...(readerPorts.length > 0 && { readerPorts }), ...(isFarewell && { isFarewell }) };
}

function readNumbered(reader: WireReader): NumberedBytes {
  let number = 0;
  let bytes: Uint8Array = new Uint8Array(0);
  readFields(reader, (tag) => {
    if (tag === intTag(1)) number = readInt(reader);
    else if (tag === bytesTag(2)) bytes = reader.blob();
    else return false;
    return true;
  });
  return { number, bytes };
}

function forPeer(reply: DataReply): DataReply {
  return reply.kind === 'error' ? { kind: 'error', error: factsForPeer(reply.error) } : reply;
}

/** What packs writes the next value into the same memory. */
function ownCopy(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

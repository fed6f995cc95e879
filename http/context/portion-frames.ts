/**
 * What readers of two nodes say to each other, as bytes: portions of reads and their answers. It is less than what a call on the internal port takes:
 * nothing is packed within something else, and what answers a portion is copied once.
 *
 *     caller: preface, then frames     u32 length of the body, u8 kind, body
 *     called: frames                   0 hello: the caller's is a frame of calls with its hello; answered by an empty one when the caller may call
 *                                      1 refusal: why not, UTF-8, the last frame
 *     2 question: u32 number, f64 milliseconds, f64 uid, f64 version of the shard map, u16 shards, u16 bytes of the name, shards as u32, name, portion
 *     3 answer:   u32 number, u16 positions, positions as f64, answer. No positions and no bytes: the main thread has to be asked
 *
 * All numbers are little endian.
 */

import { beginFrame, FrameSlicer } from '../../cluster/transport/length-frames.js';
import type { PortionQuestion } from '../../storage/reader/reader.js';
import type { PortionResult } from '../../storage/threads/messages.js';

/** The number is the version of what follows. */
export const READS_PREFACE = Buffer.from('TROUPE READS 1\n', 'latin1');

export const HELLO = 0;
export const REFUSAL = 1;
export const QUESTION = 2;
export const ANSWER = 3;

/** Larger questions are not for readers of peers. */
export const QUESTION_BYTES_MAX = 256 << 10;

/** Of what a byte holds. */
const KIND_MAX = 0xff;
const QUESTION_BYTES = 32;
const ANSWER_BYTES = 6;
const SHARD_BYTES = 4;
const POSITION_BYTES = 8;
const MANY = 0xffff;

export interface NumberedQuestion {
  readonly number: number;
  readonly question: PortionQuestion;
}

export interface NumberedAnswer {
  readonly number: number;
  /** Null: the main thread has to be asked. */
  readonly result: PortionResult | null;
}

/** What may come at which place the taker of the frames decides. preface: what has to come first; null: nothing. */
export function portionSlicer(bodyBytesMax: number, preface: Buffer | null): FrameSlicer {
  return new FrameSlicer({ bodyBytesMax, kindMax: KIND_MAX, preface, what: 'portions' });
}

/** Null: it is too large. number: an unsigned integer of 32 bits. */
export function questionFrame(number: number, question: PortionQuestion): Buffer | null {
  const { body, collection, shardMapVersion, shards, timeoutMs, uid } = question;
  const nameBytes = Buffer.byteLength(collection);
  const length = QUESTION_BYTES + shards.length * SHARD_BYTES + nameBytes + body.length;
  if (length > QUESTION_BYTES_MAX || nameBytes > MANY || shards.length > MANY) return null;
  const { at: begin, frame } = beginFrame(QUESTION, length);
  let at = frame.writeUInt32LE(number, begin);
  at = frame.writeDoubleLE(timeoutMs, at);
  at = frame.writeDoubleLE(uid, at);
  at = frame.writeDoubleLE(shardMapVersion, at);
  at = frame.writeUInt16LE(shards.length, at);
  at = frame.writeUInt16LE(nameBytes, at);
  for (const shard of shards) at = frame.writeUInt32LE(shard, at);
  at += frame.write(collection, at);
  frame.set(body, at);
  return frame;
}

/** bytes: the body of a frame; the portion stays in its memory. Errors: `Error` for bytes that are no question. */
export function readQuestion(bytes: Buffer): NumberedQuestion {
  if (bytes.length < QUESTION_BYTES) throw new Error('a question that is too short');
  const timeoutMs = bytes.readDoubleLE(4);
  const uid = countAt(bytes, 12);
  const shardMapVersion = countAt(bytes, 20);
  const nameAt = QUESTION_BYTES + bytes.readUInt16LE(28) * SHARD_BYTES;
  const bodyAt = nameAt + bytes.readUInt16LE(30);
  if (!(timeoutMs >= 0) || timeoutMs === Number.POSITIVE_INFINITY) throw new Error('a question whose time is none');
  if (bytes.length < bodyAt) throw new Error('a question that is too short');
  const shards: number[] = [];
  for (let at = QUESTION_BYTES; at < nameAt; at += SHARD_BYTES) shards.push(bytes.readUInt32LE(at));
  const collection = bytes.toString('utf8', nameAt, bodyAt);
  const question = { collection, uid, shards, body: bytes.subarray(bodyAt), timeoutMs, shardMapVersion };
  return { number: bytes.readUInt32LE(0), question };
}

export function answerFrame(number: number, result: PortionResult | null): Buffer {
  const positions = result?.positions ?? [];
  const length = ANSWER_BYTES + positions.length * POSITION_BYTES + (result?.body.length ?? 0);
  const { at: begin, frame } = beginFrame(ANSWER, length);
  let at = frame.writeUInt32LE(number, begin);
  at = frame.writeUInt16LE(positions.length, at);
  for (const position of positions) at = frame.writeDoubleLE(position, at);
  if (result !== null) frame.set(result.body, at);
  return frame;
}

/** bytes: the body of a frame; the answer is in memory of its own. Errors: `Error` for bytes that are no answer. */
export function readAnswer(bytes: Buffer): NumberedAnswer {
  if (bytes.length < ANSWER_BYTES) throw new Error('an answer that is too short');
  const number = bytes.readUInt32LE(0);
  if (bytes.length === ANSWER_BYTES) return { number, result: null };
  const bodyAt = ANSWER_BYTES + bytes.readUInt16LE(4) * POSITION_BYTES;
  if (bytes.length < bodyAt) throw new Error('an answer that is too short');
  const positions: number[] = [];
  for (let at = ANSWER_BYTES; at < bodyAt; at += POSITION_BYTES) positions.push(countAt(bytes, at));
  return { number, result: { body: new Uint8Array(bytes.subarray(bodyAt)), positions } };
}

function countAt(bytes: Buffer, at: number): number {
  const count = bytes.readDoubleLE(at);
  if (!Number.isSafeInteger(count) || count < 0) throw new Error('a number that is no count');
  return count;
}

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

const HEADER_BYTES = 5;
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

/** A frame of any kind. */
export function frameOf(kind: number, body: Uint8Array): Buffer {
  const frame = framed(kind, body.length);
  frame.set(body, HEADER_BYTES);
  return frame;
}

/** Null: it is too large. number: an unsigned integer of 32 bits. */
export function questionFrame(number: number, question: PortionQuestion): Buffer | null {
  const { body, collection, shardMapVersion, shards, timeoutMs, uid } = question;
  const nameBytes = Buffer.byteLength(collection);
  const length = QUESTION_BYTES + shards.length * SHARD_BYTES + nameBytes + body.length;
  if (length > QUESTION_BYTES_MAX || nameBytes > MANY || shards.length > MANY) return null;
  const frame = framed(QUESTION, length);
  let at = HEADER_BYTES;
  at = frame.writeUInt32LE(number, at);
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
  const frame = framed(ANSWER, length);
  let at = frame.writeUInt32LE(number, HEADER_BYTES);
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

function framed(kind: number, length: number): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + length);
  frame.writeUInt32LE(length, 0);
  frame[4] = kind;
  return frame;
}

/** Cuts what arrives into frames. */
export class FrameSlicer {
  /** A frame, or the beginning of one, whose first `filled` bytes have come. */
  #begun: Buffer | null = null;
  #filled = 0;

  /** bodyBytesMax: of a frame. preface: what has to come first; null: nothing. */
  constructor(
    private readonly bodyBytesMax: number,
    private preface: Buffer | null,
  ) {}

  /**
   * Hands out the frames that are whole now; their memory is the taker's until `each` returns, which ends this by false. bytes: may be written
   * to afterwards. Errors: `Error` for another preface and a frame that is too long; those of `each`.
   */
  push(bytes: Buffer, each: (kind: number, body: Buffer) => boolean): void {
    let at = 0;
    while (at < bytes.length) {
      const rest = bytes.subarray(at);
      if (this.#begun === null) {
        const needed = this.#needed(rest);
        if (rest.length >= needed) {
          at += needed;
          if (!this.#hand(rest.subarray(0, needed), each)) return;
          continue;
        }
        this.#begun = Buffer.allocUnsafe(needed);
      }
      const taken = rest.copy(this.#begun, this.#filled);
      at += taken;
      this.#filled += taken;
      if (this.#filled === this.#begun.length && !this.#full(this.#begun, each)) return;
    }
  }

  /** The beginning of a frame told how long it is, or it is whole. False: that is enough. */
  #full(begun: Buffer, each: (kind: number, body: Buffer) => boolean): boolean {
    const needed = this.#needed(begun);
    if (needed > begun.length) {
      this.#begun = Buffer.allocUnsafe(needed);
      begun.copy(this.#begun);
      return true;
    }
    this.#begun = null;
    this.#filled = 0;
    return this.#hand(begun, each);
  }

  /** Bytes of the frame that begins here, as far as they tell. */
  #needed(bytes: Buffer): number {
    if (this.preface !== null) return this.preface.length;
    if (bytes.length < HEADER_BYTES) return HEADER_BYTES;
    const length = bytes.readUInt32LE(0);
    if (length > this.bodyBytesMax) throw new Error(`a frame of ${length} bytes; at most ${this.bodyBytesMax} are taken`);
    return HEADER_BYTES + length;
  }

  #hand(frame: Buffer, each: (kind: number, body: Buffer) => boolean): boolean {
    if (this.preface === null) return each(frame[4] as number, frame.subarray(HEADER_BYTES));
    if (!frame.equals(this.preface)) throw new Error('that is no stream of portions');
    this.preface = null;
    return true;
  }
}

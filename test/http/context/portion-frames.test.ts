import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frameOf } from '../../../cluster/transport/length-frames.js';
import {
  ANSWER,
  answerFrame,
  HELLO,
  portionSlicer,
  QUESTION,
  QUESTION_BYTES_MAX,
  questionFrame,
  READS_PREFACE,
  readAnswer,
  readQuestion,
} from '../../../http/context/portion-frames.js';
import { seededRandom } from '../../../ops/random.js';

const BODY = new Uint8Array([7, 0, 255]);
const LARGEST = Number.MAX_SAFE_INTEGER;
const QUESTION_ONE = {
  collection: 'größe',
  uid: LARGEST,
  shards: [0, 5, 0xffff_ffff],
  body: BODY,
  timeoutMs: 59_999.25,
  shardMapVersion: 3,
};
const RESULT = { body: BODY, positions: [0, LARGEST] };

/** The frames that a slicer hands out of parts of these bytes, as `kind:hex`. */
function sliced(parts: readonly Buffer[], preface: Buffer | null = null, bodyBytesMax = 1000): string[] {
  const slicer = portionSlicer(bodyBytesMax, preface);
  const frames: string[] = [];
  // All reads of a thread go into one memory.
  const shared = Buffer.alloc(4096);
  for (const part of parts) {
    part.copy(shared);
    slicer.push(shared.subarray(0, part.length), (kind, body) => {
      frames.push(`${kind}:${body.toString('hex')}`);
      return true;
    });
    shared.fill(0xee);
  }
  return frames;
}

/** What was framed, without its header. */
const bodyOf = (frame: Buffer | null): Buffer => (frame as Buffer).subarray(5);

test('questions and answers come back as they were', () => {
  assert.deepEqual(readQuestion(bodyOf(questionFrame(0xffff_ffff, QUESTION_ONE))), {
    number: 0xffff_ffff,
    question: { ...QUESTION_ONE, body: Buffer.from(BODY) },
  });
  assert.deepEqual(readAnswer(bodyOf(answerFrame(1, RESULT))), { number: 1, result: RESULT });
  assert.deepEqual(readAnswer(bodyOf(answerFrame(2, null))), { number: 2, result: null });
});

test('a question that is too large for a frame is none', () => {
  const fits = QUESTION_BYTES_MAX - bodyOf(questionFrame(1, { ...QUESTION_ONE, body: new Uint8Array(0) })).length;
  assert.equal(bodyOf(questionFrame(1, { ...QUESTION_ONE, body: new Uint8Array(fits) })).length, QUESTION_BYTES_MAX);
  assert.equal(questionFrame(1, { ...QUESTION_ONE, body: new Uint8Array(fits + 1) }), null);
  assert.equal(questionFrame(1, { ...QUESTION_ONE, collection: 'a'.repeat(70_000) }), null);
  assert.equal(questionFrame(1, { ...QUESTION_ONE, shards: Array.from({ length: 70_000 }, (_, at) => at) }), null);
});

test('frames are cut out of what arrives, however it is divided', () => {
  const frames = [
    frameOf(HELLO, new Uint8Array(0)),
    questionFrame(1, QUESTION_ONE) as Buffer,
    answerFrame(1, RESULT),
    answerFrame(2, null),
  ];
  const all = Buffer.concat([READS_PREFACE, ...frames]);
  const kinds = [HELLO, QUESTION, ANSWER, ANSWER];
  const expected = frames.map((frame, at) => `${kinds[at]}:${bodyOf(frame).toString('hex')}`);
  assert.deepEqual(sliced([all], READS_PREFACE), expected);
  const singly = Array.from({ length: all.length }, (_, at) => all.subarray(at, at + 1));
  assert.deepEqual(sliced(singly, READS_PREFACE), expected);
  for (let cut = 1; cut < all.length; cut++) {
    assert.deepEqual(sliced([all.subarray(0, cut), all.subarray(cut)], READS_PREFACE), expected, `cut at ${cut}`);
  }
});

test('another preface and a frame that is too long are refused before its bytes come', () => {
  assert.throws(() => sliced([Buffer.from('TROUPE READS 2\n')], READS_PREFACE), /no stream of portions/);
  const header = Buffer.from([0, 0, 0, 0, QUESTION]);
  header.writeUInt32LE(0xffff_ffff);
  assert.throws(() => sliced([header.subarray(0, 4), header.subarray(4)]), /4294967295 bytes; at most 1000/);
  assert.deepEqual(sliced([header.subarray(0, 4)]), []);
});

test('a taker that has had enough gets no more frames of a read', () => {
  const two = Buffer.concat([answerFrame(1, null), answerFrame(2, null)]);
  let frames = 0;
  portionSlicer(1000, null).push(two, () => ++frames > 1);
  assert.equal(frames, 1);
});

test('bytes of strangers are questions and answers, or an error: never a crash, nor a number that is none', () => {
  const random = seededRandom(20_001);
  const sources = [bodyOf(questionFrame(9, QUESTION_ONE)), bodyOf(answerFrame(9, RESULT))];
  let read = 0;
  for (let round = 0; round < 4000; round++) {
    const source = sources[round % 2] as Buffer;
    const bytes = Buffer.from(source.subarray(0, random.unit() < 0.3 ? Math.floor(random.unit() * source.length) : source.length));
    for (let flips = Math.floor(random.unit() * 6); flips > 0 && bytes.length > 0; flips--) {
      bytes[Math.floor(random.unit() * bytes.length)] = Math.floor(random.unit() * 256);
    }
    try {
      const { question } = readQuestion(bytes);
      const numbers = [question.uid, question.shardMapVersion, ...question.shards];
      assert.ok(numbers.every((number) => Number.isSafeInteger(number) && number >= 0) && Number.isFinite(question.timeoutMs));
      read++;
    } catch (error) {
      assert.match((error as Error).message, /too short|no count|time is none/);
    }
    try {
      const { result } = readAnswer(bytes);
      assert.ok(result === null || result.positions.every((position) => Number.isSafeInteger(position) && position >= 0));
      read++;
    } catch (error) {
      assert.match((error as Error).message, /too short|no count/);
    }
  }
  assert.ok(read > 200);
});

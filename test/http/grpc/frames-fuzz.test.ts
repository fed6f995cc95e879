/**
 * Random frames, valid and broken, in random pieces: the session never throws, sends whole frames only, keeps to the client's windows,
 * answers no request twice and none that was not sent, and ends a broken connection with one GOAWAY.
 *
 * Repeat a run with TROUPE_SEED=<seed>; `npm run fuzz` sends 1,000,000 frames (TROUPE_FRAMES).
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Http2Session } from '../../../http/grpc/http2-session.js';
import type { Http2Stream } from '../../../http/grpc/http2-stream.js';
import { type RandomNumbers, seededRandom } from '../../../ops/random.js';
import * as h2 from '../../../protocols/http2/frames.js';
import { literalBlock } from '../../../protocols/http2/hpack-encoder.js';
import { testSeed } from '../../seed.js';
import { bytes, framesOf, HELLO, REQUEST } from './frames.js';

const FRAMES = Number(process.env.TROUPE_FRAMES ?? 20_000);
const SEED = testSeed();
const CONNECTION_FRAMES = 60;
const LAST = literalBlock(['grpc-status', '0']);

test('no frames make a session fail or send what it may not', { timeout: 60_000 + FRAMES }, (t) => {
  t.diagnostic(`TROUPE_SEED=${SEED}`);
  const random = seededRandom(SEED);
  let [answers, broken] = [0, 0];
  for (let sent = 0; sent < FRAMES; sent += CONNECTION_FRAMES) {
    const connection = new Fuzzed(random);
    connection.run();
    answers += connection.answers;
    broken += connection.goAways;
  }
  t.diagnostic(`${answers} answers, ${broken} broken connections`);
  assert.ok(answers > FRAMES / 20 && broken > FRAMES / CONNECTION_FRAMES / 10);
});

class Fuzzed {
  answers = 0;
  private readonly session: Http2Session;
  private readonly open: Http2Stream[] = [];
  private readonly started = new Set<number>();
  private readonly ended = new Set<number>();
  private readonly windows = new Map<number, number>();
  /** What its frames have told the server, and what is left of it. */
  private initialWindow = h2.WINDOW_DEFAULT;
  private window = h2.WINDOW_DEFAULT;
  private nextStream = 1;
  goAways = 0;
  /** A broken frame was sent: the windows are unknown. */
  private lenient = false;

  constructor(private readonly random: RandomNumbers) {
    this.session = new Http2Session({
      request: (stream) => {
        this.started.add(stream.id);
        this.open.push(stream);
        return { data: () => {}, end: () => {}, cancelled: () => {} };
      },
      output: () => {},
    });
    this.session.receive(HELLO, 0);
    this.check();
  }

  run(): void {
    const brokenEvery = this.random.integer(2) === 0 ? 20 : 1_000_000;
    for (let at = 0; at < CONNECTION_FRAMES && !this.session.broken; at++) {
      const frame = this.frame(this.random.integer(brokenEvery) === 0);
      for (let from = 0; from < frame.length; ) {
        const to = Math.min(frame.length, from + 1 + this.random.integer(this.random.integer(4) === 0 ? 12 : 100_000));
        this.session.receive(Buffer.from(frame.subarray(from, to)), at);
        from = to;
        this.check();
      }
      if (this.random.integer(3) === 0) this.answer();
      this.check();
    }
    if (this.session.broken) assert.equal(this.goAways, 1);
    this.session.lost();
    assert.equal(this.session.streams.size, 0);
  }

  private answer(): void {
    const stream = this.open.splice(this.random.integer(Math.max(1, this.open.length)), 1)[0];
    if (stream === undefined) return;
    if (this.random.integer(5) === 0) this.session.answerEmpty(stream, [':status', '200', 'grpc-status', '5']);
    else
      this.session.answer(stream, [Buffer.alloc(5), Buffer.alloc(this.random.integer(this.random.integer(4) === 0 ? 90_000 : 900))], LAST);
  }

  private frame(breaks: boolean): Buffer {
    const { random } = this;
    if (!breaks) return Buffer.from(this.valid());
    this.lenient = true;
    const frame = Buffer.from(this.valid());
    if (random.integer(2) === 0) frame[random.integer(frame.length)] = random.integer(256);
    else
      return bytes(
        h2.frame(random.integer(12), random.integer(256), random.integer(9), Buffer.alloc(random.integer(40), random.integer(256))),
      );
    return frame;
  }

  private valid(): Uint8Array {
    const { random } = this;
    const known = 1 + 2 * random.integer(Math.max(1, (this.nextStream - 1) / 2));
    switch (random.integer(this.nextStream === 1 ? 1 : 10)) {
      case 0:
      case 1:
      case 2:
        return this.request();
      case 3:
      case 4:
        return h2.frame(h2.DATA, random.integer(2), known, Buffer.alloc(random.integer(3000)));
      case 5:
        return h2.frame(h2.PING, random.integer(2), 0, Buffer.alloc(8));
      case 6: {
        const more = 1 + random.integer(50_000);
        const stream = random.integer(2) === 0 ? 0 : known;
        if (stream === 0) this.window += more;
        else this.windows.set(stream, this.windowOf(stream) + more);
        return h2.numberFrame(h2.WINDOW_UPDATE, stream, more);
      }
      case 7: {
        const size = random.integer(100_000);
        for (const stream of this.started) this.windows.set(stream, this.windowOf(stream) + size - this.initialWindow);
        this.initialWindow = size;
        return h2.settingsFrame([
          [h2.SETTINGS_INITIAL_WINDOW_SIZE, size],
          [h2.SETTINGS_HEADER_TABLE_SIZE, random.integer(5000)],
        ]);
      }
      case 8:
        return h2.numberFrame(h2.RST_STREAM, known, h2.CANCEL);
      default:
        return h2.frame(10 + random.integer(200), random.integer(256), known, Buffer.alloc(random.integer(300)));
    }
  }

  private request(): Uint8Array {
    const stream = this.nextStream;
    this.nextStream += 2;
    // The server takes it for started only if it comes whole.
    this.windows.set(stream, this.initialWindow);
    const block = literalBlock(REQUEST);
    const cut = this.random.integer(block.length);
    const ends = this.random.integer(2) * h2.END_STREAM;
    return bytes(
      h2.frame(h2.HEADERS, ends, stream, block.subarray(0, cut)),
      h2.frame(h2.CONTINUATION, h2.END_HEADERS, stream, block.subarray(cut)),
    );
  }

  private windowOf(stream: number): number {
    return this.windows.get(stream) ?? this.initialWindow;
  }

  /** Everything that the session has sent. */
  private check(): void {
    for (const { type, flags, stream, payload } of framesOf(bytes(...this.session.take()))) {
      assert.ok(payload.length <= h2.FRAME_BYTES_DEFAULT);
      assert.equal(this.goAways, 0);
      if (type === h2.GOAWAY) this.goAways++;
      if (type === h2.HEADERS || type === h2.DATA) assert.ok(this.started.has(stream) && !this.ended.has(stream));
      if (type === h2.DATA) {
        this.window -= payload.length;
        this.windows.set(stream, this.windowOf(stream) - payload.length);
        assert.ok(this.lenient || (this.window >= 0 && this.windowOf(stream) >= 0));
      }
      if (type === h2.HEADERS && (flags & h2.END_STREAM) !== 0) {
        this.ended.add(stream);
        this.answers++;
      }
      if (type === h2.RST_STREAM) this.ended.add(stream);
    }
  }
}

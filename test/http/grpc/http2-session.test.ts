import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Http2Session, STREAMS_MAX } from '../../../http/grpc/http2-session.js';
import type { Http2Stream } from '../../../http/grpc/http2-stream.js';
import * as h2 from '../../../protocols/http2/frames.js';
import type { FieldList } from '../../../protocols/http2/hpack-decoder.js';
import { literalBlock } from '../../../protocols/http2/hpack-encoder.js';
import { bytes, data, type Frame, framesOf, HELLO, headers, REQUEST } from './frames.js';

const LAST = literalBlock(['grpc-status', '0']);

interface Request {
  readonly stream: Http2Stream;
  readonly fields: FieldList;
  body: Buffer;
  ended: boolean;
  cancelled: boolean;
}

class Client {
  readonly requests: Request[] = [];
  readonly session = new Http2Session({
    request: (stream, fields) => {
      const request: Request = { stream, fields, body: Buffer.alloc(0), ended: false, cancelled: false };
      this.requests.push(request);
      return {
        data: (part) => {
          request.body = Buffer.concat([request.body, part]);
        },
        end: () => {
          request.ended = true;
        },
        cancelled: () => {
          request.cancelled = true;
        },
      };
    },
    output: () => {},
  });
  nowMs = 0;

  /** After the first frames of both sides. */
  constructor() {
    this.send(HELLO);
  }

  /** What the server sends in turn. */
  send(...parts: readonly Uint8Array[]): Frame[] {
    this.session.receive(bytes(...parts), this.nowMs);
    return this.taken();
  }

  taken(): Frame[] {
    return framesOf(bytes(...this.session.take()));
  }

  /** The code with which the connection ended; null when it goes on. */
  fails(...parts: readonly Uint8Array[]): number | null {
    const last = this.send(...parts).at(-1);
    assert.equal(this.session.broken, last?.type === h2.GOAWAY);
    return last?.type === h2.GOAWAY ? last.payload.readUInt32BE(4) : null;
  }
}

function resetCode(frames: readonly Frame[]): number | null {
  const reset = frames.find(({ type }) => type === h2.RST_STREAM);
  return reset === undefined ? null : reset.payload.readUInt32BE(0);
}

function bodyOf(frames: readonly Frame[]): Buffer {
  return bytes(...frames.filter(({ type }) => type === h2.DATA).map(({ payload }) => payload));
}

test('the server begins with its settings, and acknowledges those of the client and its pings', () => {
  const session = new Http2Session({ request: () => assert.fail(), output: () => {} });
  assert.deepEqual(
    framesOf(bytes(...session.take())).map(({ type }) => type),
    [h2.SETTINGS_FRAME, h2.WINDOW_UPDATE],
  );
  session.receive(bytes(HELLO, h2.frame(h2.PING, 0, 0, Buffer.from('12345678'))), 0);
  const [settings, ping] = framesOf(bytes(...session.take()));
  assert.deepEqual([settings?.type, settings?.flags, settings?.payload.length], [h2.SETTINGS_FRAME, h2.ACK, 0]);
  assert.deepEqual([ping?.type, ping?.flags, ping?.payload.toString()], [h2.PING, h2.ACK, '12345678']);
});

test('a request is read whatever parts its bytes come in', () => {
  const whole = bytes(
    HELLO,
    h2.frame(h2.PRIORITY, 0, 1, Buffer.alloc(5)),
    h2.frame(99, 0xff, 7, Buffer.from('a frame of a type that nobody knows')),
    h2.frame(
      h2.HEADERS,
      h2.PADDED | h2.HAS_PRIORITY,
      1,
      Uint8Array.of(3, 0, 0, 0, 0, 9),
      literalBlock(REQUEST).subarray(0, 10),
      Buffer.alloc(3),
    ),
    h2.frame(h2.CONTINUATION, 0, 1, literalBlock(REQUEST).subarray(10, 30)),
    h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1, literalBlock(REQUEST).subarray(30)),
    data(1, Buffer.from('abc')),
    h2.frame(h2.DATA, h2.PADDED | h2.END_STREAM, 1, Uint8Array.of(4), Buffer.from('defgh'), Buffer.alloc(4)),
    headers(3, REQUEST, h2.END_HEADERS | h2.END_STREAM),
  );
  for (const size of [1, 2, 3, 7, 10, 50, whole.length]) {
    const client = new Client();
    for (let at = HELLO.length; at < whole.length; at += size) client.send(whole.subarray(at, at + size));
    const seen = client.requests.map(({ fields, body, ended }) => [fields, body.toString(), ended]);
    assert.deepEqual(seen, [
      [REQUEST, 'abcdefgh', true],
      [REQUEST, '', true],
    ]);
  }
});

test('the bytes of an answer wait for the windows of stream and connection, and for nothing else', () => {
  const client = new Client();
  const body = Buffer.alloc(200_000, 'answer');
  client.send(h2.settingsFrame([[h2.SETTINGS_INITIAL_WINDOW_SIZE, 1000]]), headers(1, REQUEST, h2.END_HEADERS | h2.END_STREAM));
  const [{ stream }] = client.requests as [Request];
  client.session.answer(stream, [body.subarray(0, 500), body.subarray(500)], LAST);
  const sent: Frame[] = client.taken();
  assert.equal(bodyOf(sent).length, 1000);
  sent.push(...client.send(h2.settingsFrame([[h2.SETTINGS_INITIAL_WINDOW_SIZE, 100]])));
  sent.push(...client.send(h2.numberFrame(h2.WINDOW_UPDATE, 1, 900)));
  assert.equal(bodyOf(sent).length, 1000);
  sent.push(...client.send(h2.numberFrame(h2.WINDOW_UPDATE, 1, 1_000_000)));
  assert.equal(bodyOf(sent).length, h2.WINDOW_DEFAULT);
  sent.push(...client.send(h2.numberFrame(h2.WINDOW_UPDATE, 0, 1_000_000)));
  assert.deepEqual(bodyOf(sent), body);
  assert.ok(sent.every(({ payload }) => payload.length <= h2.FRAME_BYTES_DEFAULT));
  assert.deepEqual([sent.at(-1)?.type, sent.at(-1)?.flags], [h2.HEADERS, h2.END_HEADERS | h2.END_STREAM]);
  assert.equal(client.session.streams.size, 0);
});

test('bodies wait while the client does not read', () => {
  const client = new Client();
  client.send(headers(1, REQUEST, h2.END_HEADERS | h2.END_STREAM));
  client.session.pause(true);
  client.session.answer((client.requests[0] as Request).stream, [Buffer.from('abc')], LAST);
  assert.deepEqual(bodyOf(client.taken()), Buffer.alloc(0));
  client.session.pause(false);
  assert.equal(bodyOf(client.taken()).toString(), 'abc');
});

test('a large body gets window updates for its stream and for the connection', () => {
  const client = new Client();
  client.send(headers(1));
  const part = Buffer.alloc(1 << 20);
  let allowed = 16 << 20;
  let streamAllowed = 4 << 20;
  for (let sent = 0; sent < 40; sent++) {
    allowed -= part.length;
    streamAllowed -= part.length;
    assert.ok(allowed >= 0 && streamAllowed >= 0);
    for (const { type, stream, payload } of client.send(data(1, part))) {
      assert.equal(type, h2.WINDOW_UPDATE);
      if (stream === 0) allowed += payload.readUInt32BE(0);
      else streamAllowed += payload.readUInt32BE(0);
    }
  }
  assert.equal(client.requests[0]?.body.length, 40 << 20);
});

test('a body beyond its window is refused, and the others go on', () => {
  const client = new Client();
  client.send(headers(1), headers(3));
  // As if the client had used up its window.
  (client.requests[0] as Request).stream.receiveWindow = 2;
  assert.equal(resetCode(client.send(data(1, Buffer.from('abc')))), h2.FLOW_CONTROL_ERROR);
  client.send(data(3, Buffer.from('abc'), h2.END_STREAM));
  assert.equal(client.requests[1]?.body.toString(), 'abc');
});

test('a request that the client gives up is cancelled, and its late frames are skipped', () => {
  const client = new Client();
  client.send(headers(1), h2.numberFrame(h2.RST_STREAM, 1, h2.CANCEL));
  assert.equal(client.requests[0]?.cancelled, true);
  assert.equal(client.fails(data(1, Buffer.from('late')), h2.numberFrame(h2.WINDOW_UPDATE, 1, 5), headers(1), headers(3)), null);
  assert.equal(client.requests.length, 2);
  client.session.answer((client.requests[0] as Request).stream, [Buffer.from('x')], LAST);
  assert.deepEqual(client.taken(), []);
});

test('all requests are cancelled when the connection is lost', () => {
  const client = new Client();
  client.send(headers(1), headers(3));
  client.session.lost();
  assert.deepEqual(
    client.requests.map(({ cancelled }) => cancelled),
    [true, true],
  );
});

test('a client that resets requests over and over is cut off, one that does it now and then is not', () => {
  const give = (client: Client, stream: number) => client.fails(headers(stream), h2.numberFrame(h2.RST_STREAM, stream, h2.CANCEL));
  const hasty = new Client();
  let stream = 1;
  while (stream < 4000 && give(hasty, stream) === null) stream += 2;
  assert.ok(stream > 1500 && stream < 2100, String(stream));
  const patient = new Client();
  for (let other = 1; other < 8000; other += 2) {
    patient.nowMs += 40;
    assert.equal(give(patient, other), null);
  }
});

test('streams at once are bounded, and requests that were given up count until their work ends', () => {
  const client = new Client();
  for (let stream = 1; stream < 2 * STREAMS_MAX; stream += 2) client.send(headers(stream));
  assert.equal(resetCode(client.send(headers(2 * STREAMS_MAX + 1))), h2.REFUSED_STREAM);
  client.send(h2.numberFrame(h2.RST_STREAM, 1, h2.CANCEL));
  client.session.abandoned = 1;
  assert.equal(resetCode(client.send(headers(2 * STREAMS_MAX + 3))), h2.REFUSED_STREAM);
  client.session.abandoned = 0;
  assert.equal(resetCode(client.send(headers(2 * STREAMS_MAX + 5))), null);
});

test('a server that ends takes no new request and lets the others end', () => {
  const client = new Client();
  client.send(headers(1));
  client.session.shutDown();
  const goAway = client.taken().find(({ type }) => type === h2.GOAWAY);
  assert.deepEqual([goAway?.payload.readUInt32BE(0), goAway?.payload.readUInt32BE(4)], [1, h2.NO_ERROR]);
  assert.equal(resetCode(client.send(headers(3))), h2.REFUSED_STREAM);
  client.send(data(1, Buffer.from('abc'), h2.END_STREAM));
  assert.equal(client.requests[0]?.ended, true);
});

test('an answer that comes before the end of its request ends the stream', () => {
  const client = new Client();
  client.send(headers(1));
  client.session.answerEmpty((client.requests[0] as Request).stream, [':status', '200', 'grpc-status', '8']);
  const sent = client.taken();
  assert.equal(sent[0]?.flags, h2.END_HEADERS | h2.END_STREAM);
  assert.equal(resetCode(sent), h2.NO_ERROR);
});

test('a header that HTTP/2 does not allow is refused', () => {
  const fields = {
    'no path': REQUEST.filter((_, at) => at !== 4 && at !== 5),
    'two methods': [':method', 'POST', ...REQUEST],
    'an unknown pseudo field': [':status', '200', ...REQUEST],
    'a pseudo field after others': [...REQUEST, ':authority', 'x'],
    'capitals in a name': [...REQUEST, 'Name', 'x'],
    'no name': [...REQUEST, '', 'x'],
    'a line break': [...REQUEST, 'name', 'x\ny'],
    'a field of the connection': [...REQUEST, 'connection', 'close'],
    'a length that is no number': [...REQUEST, 'content-length', '+3'],
    'two lengths': [...REQUEST, 'content-length', '3', 'content-length', '4'],
    'te other than trailers': [...REQUEST.slice(0, -1), 'gzip'],
  };
  for (const [what, list] of Object.entries(fields)) {
    const client = new Client();
    assert.equal(resetCode(client.send(headers(1, list))), h2.PROTOCOL_ERROR, what);
    client.send(headers(3));
    assert.equal(client.requests.length, 1, what);
  }
});

test('a body of another length than the request says ends its stream, not the connection', () => {
  const withLength = (length: number) => [...REQUEST, 'content-length', String(length)];
  const bodies: Readonly<Record<string, readonly Uint8Array[]>> = {
    'too short': [headers(1, withLength(5)), data(1, Buffer.from('abc')), data(1, Buffer.from('d'), h2.END_STREAM)],
    'too short before trailers': [
      headers(1, withLength(5)),
      data(1, Buffer.from('abc')),
      headers(1, ['x', 'y'], h2.END_HEADERS | h2.END_STREAM),
    ],
    'too long': [headers(1, withLength(5)), data(1, Buffer.from('abc')), data(1, Buffer.from('def'))],
    missing: [headers(1, withLength(5), h2.END_HEADERS | h2.END_STREAM)],
  };
  for (const [name, frames] of Object.entries(bodies)) {
    const client = new Client();
    assert.equal(resetCode(client.send(...frames)), h2.PROTOCOL_ERROR, name);
    assert.equal(client.session.broken, false);
    const [request] = client.requests;
    assert.deepEqual([request?.ended, request?.cancelled], [false, true], name);
  }
});

test('padding does not count for the length that a request says', () => {
  const client = new Client();
  const padded = Buffer.from([2, ...Buffer.from('abc'), 0, 0]);
  for (const stream of [1, 3]) {
    client.send(
      headers(stream, [...REQUEST, 'content-length', '5']),
      h2.frame(h2.DATA, h2.PADDED, stream, padded),
      data(stream, Buffer.from('de'), h2.END_STREAM),
    );
  }
  assert.deepEqual(
    client.requests.map(({ body, ended }) => [body.toString(), ended]),
    [
      ['abcde', true],
      ['abcde', true],
    ],
  );
});

test('a header that is larger than the limit gets 431, and the connection goes on', () => {
  const client = new Client();
  const [answer] = client.send(headers(1, [...REQUEST, 'cookie', 'x'.repeat(40_000)]));
  assert.equal(answer?.payload.toString('latin1').includes('431'), true);
  client.send(headers(3));
  assert.equal(client.requests.length, 1);
});

test('the last fields of a request end it, and only at its end', () => {
  const client = new Client();
  client.send(headers(1), headers(1, ['some', 'field'], h2.END_HEADERS | h2.END_STREAM));
  assert.equal(client.requests[0]?.ended, true);
  assert.equal(resetCode(client.send(headers(3), headers(3, ['some', 'field']))), h2.PROTOCOL_ERROR);
  assert.equal(resetCode(client.send(headers(5, REQUEST, h2.END_HEADERS | h2.END_STREAM), data(5, Buffer.from('x')))), h2.STREAM_CLOSED);
});

test('a client that turns off the table of fields gets no indexes', () => {
  const client = new Client();
  const answer = (stream: number) => {
    client.send(headers(stream, REQUEST, h2.END_HEADERS | h2.END_STREAM));
    client.session.answer((client.requests.at(-1) as Request).stream, [Buffer.from('x')], LAST);
    return client.taken()[0]?.payload as Buffer;
  };
  answer(1);
  assert.equal(answer(3).length, 3);
  client.send(h2.settingsFrame([[h2.SETTINGS_HEADER_TABLE_SIZE, 0]]));
  const first = answer(5);
  const second = answer(7);
  assert.equal(first[0], 0x20);
  assert.deepEqual(first.subarray(1), second);
  assert.ok(second.length > 50 && second.subarray(1).every((byte) => byte < 0x80));
});

test('what breaks the rules of a connection ends it with the code that says why', () => {
  const block = literalBlock(REQUEST);
  const cases: Record<string, readonly [code: number, ...parts: Uint8Array[]]> = {
    'a large frame': [h2.FRAME_SIZE_ERROR, Uint8Array.of(0x20, 0, 0, h2.DATA, 0, 0, 0, 0, 1)],
    'large settings': [h2.ENHANCE_YOUR_CALM, Uint8Array.of(2, 0, 0, h2.SETTINGS_FRAME, 0, 0, 0, 0, 0)],
    'settings of 5 bytes': [h2.FRAME_SIZE_ERROR, h2.frame(h2.SETTINGS_FRAME, 0, 0, Buffer.alloc(5))],
    'an acknowledgement with bytes': [h2.FRAME_SIZE_ERROR, h2.frame(h2.SETTINGS_FRAME, h2.ACK, 0, Buffer.alloc(6))],
    'settings of a stream': [h2.PROTOCOL_ERROR, h2.frame(h2.SETTINGS_FRAME, 0, 1)],
    'a window of 2 GiB': [h2.FLOW_CONTROL_ERROR, h2.settingsFrame([[h2.SETTINGS_INITIAL_WINDOW_SIZE, 0x8000_0000]])],
    'frames of 1 byte': [h2.PROTOCOL_ERROR, h2.settingsFrame([[h2.SETTINGS_MAX_FRAME_SIZE, 1]])],
    'push 2': [h2.PROTOCOL_ERROR, h2.settingsFrame([[h2.SETTINGS_ENABLE_PUSH, 2]])],
    'a ping of 7 bytes': [h2.FRAME_SIZE_ERROR, h2.frame(h2.PING, 0, 0, Buffer.alloc(7))],
    'a ping of a stream': [h2.PROTOCOL_ERROR, h2.frame(h2.PING, 0, 1, Buffer.alloc(8))],
    'a goaway of 4 bytes': [h2.FRAME_SIZE_ERROR, h2.frame(h2.GOAWAY, 0, 0, Buffer.alloc(4))],
    'a push': [h2.PROTOCOL_ERROR, h2.frame(h2.PUSH_PROMISE, h2.END_HEADERS, 1, Buffer.alloc(4))],
    'a stream of the server': [h2.PROTOCOL_ERROR, headers(2)],
    'a header without a stream': [h2.PROTOCOL_ERROR, headers(0)],
    'data of no stream': [h2.PROTOCOL_ERROR, data(0, Buffer.from('x'))],
    'data of a stream to come': [h2.PROTOCOL_ERROR, data(1, Buffer.from('x'))],
    'a reset of a stream to come': [h2.PROTOCOL_ERROR, h2.numberFrame(h2.RST_STREAM, 1, 0)],
    'a reset of 3 bytes': [h2.FRAME_SIZE_ERROR, headers(1), h2.frame(h2.RST_STREAM, 0, 1, Buffer.alloc(3))],
    'an update of a stream to come': [h2.PROTOCOL_ERROR, h2.numberFrame(h2.WINDOW_UPDATE, 1, 1)],
    'an update of 0': [h2.PROTOCOL_ERROR, h2.numberFrame(h2.WINDOW_UPDATE, 0, 0)],
    'an update beyond 2 GiB': [h2.FLOW_CONTROL_ERROR, h2.numberFrame(h2.WINDOW_UPDATE, 0, h2.WINDOW_MAX)],
    'more padding than data': [h2.PROTOCOL_ERROR, headers(1), h2.frame(h2.DATA, h2.PADDED, 1, Uint8Array.of(2, 0))],
    'padding without a byte': [h2.FRAME_SIZE_ERROR, headers(1), h2.frame(h2.DATA, h2.PADDED, 1), Buffer.alloc(9)],
    'more padding than header': [
      h2.PROTOCOL_ERROR,
      h2.frame(h2.HEADERS, h2.PADDED | h2.END_HEADERS, 1, Uint8Array.of(9), block.subarray(0, 5)),
    ],
    'a continuation of nothing': [h2.PROTOCOL_ERROR, h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1, block)],
    'an interrupted header': [h2.PROTOCOL_ERROR, headers(1, REQUEST, 0), h2.frame(h2.PING, 0, 0, Buffer.alloc(8))],
    'a header continued for another stream': [h2.PROTOCOL_ERROR, headers(1, REQUEST, 0), h2.frame(h2.CONTINUATION, 0, 3, block)],
    'a damaged header': [h2.COMPRESSION_ERROR, h2.frame(h2.HEADERS, h2.END_HEADERS, 1, Uint8Array.of(0x80))],
    'empty continuations without an end': [
      h2.ENHANCE_YOUR_CALM,
      headers(1, REQUEST, 0),
      ...Array.from({ length: 100 }, () => h2.frame(h2.CONTINUATION, 0, 1)),
    ],
    'large continuations': [
      h2.ENHANCE_YOUR_CALM,
      headers(1, REQUEST, 0),
      ...Array.from({ length: 3 }, () => h2.frame(h2.CONTINUATION, 0, 1, Buffer.alloc(40_000))),
    ],
  };
  for (const [what, [code, ...parts]] of Object.entries(cases)) {
    const client = new Client();
    assert.equal(client.fails(...parts), code, what);
    assert.deepEqual(client.send(headers(101)), [], what);
  }
});

test('a connection that does not begin as HTTP/2 does ends at its first wrong byte', () => {
  for (const start of ['GET / HTTP/1.1\r\n\r\n', 'PRX', '\x16\x03\x01']) {
    const session = new Http2Session({ request: () => assert.fail(), output: () => {} });
    session.take();
    session.receive(Buffer.from(start, 'latin1'), 0);
    assert.equal(framesOf(bytes(...session.take())).at(-1)?.type, h2.GOAWAY);
    assert.ok(session.broken);
  }
  const session = new Http2Session({ request: () => assert.fail(), output: () => {} });
  session.take();
  session.receive(bytes(h2.PREFACE, h2.frame(h2.PING, 0, 0, Buffer.alloc(8))), 0);
  assert.ok(session.broken);
});

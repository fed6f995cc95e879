import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { greetingOf } from '../../../cluster/transport/call-stream.js';
import { frameOf } from '../../../cluster/transport/length-frames.js';
import { Asker } from '../../../http/context/peer-asker.js';
import {
  ANSWER,
  HELLO,
  portionSlicer,
  QUESTION,
  questionFrame,
  READS_PREFACE,
  REFUSAL,
  readAnswer,
} from '../../../http/context/portion-frames.js';
import { PortionStream } from '../../../http/context/portion-stream.js';
import type { PortionQuestion } from '../../../storage/reader/reader.js';

const GREETING = greetingOf({ versions: { min: 1, max: 1 }, clusterId: 'c', from: 1, to: 2, session: 5, release: 'x' });
const BEGIN = Buffer.concat([READS_PREFACE, frameOf(HELLO, GREETING)]);
const QUESTION_ONE: PortionQuestion = {
  collection: 'c',
  uid: 7,
  shards: [1],
  body: Buffer.from('ask'),
  timeoutMs: 5000,
  shardMapVersion: 2,
};

/** A reader of a peer that answers each portion with its own bytes, behind a connection to it. */
async function asked(t: TestContext) {
  const state = { nowMs: 0, verdicts: [] as ((isAdmitted: boolean) => void)[], answered: 0, answerBytes: 0 };
  const askers: Asker[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    askers.push(
      new Asker(socket, {
        nowMs: () => state.nowMs,
        answer: ({ body }) => {
          state.answered++;
          return { body: state.answerBytes > 0 ? new Uint8Array(state.answerBytes) : new Uint8Array(body), positions: [4] };
        },
        judge: () => new Promise((resolve) => state.verdicts.push(resolve)),
      }),
    );
    socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const dial = async (): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {});
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  /** As soon as one is asked for. */
  const judge = async (isAdmitted: boolean): Promise<void> => {
    while (state.verdicts.length === 0) await new Promise(setImmediate);
    (state.verdicts.shift() as (isAdmitted: boolean) => void)(isAdmitted);
  };
  return { askers, dial, judge, sockets, state };
}

/** Frames as they come, as `kind:text`. */
function framesOf(socket: Socket): { readonly frames: string[]; until(count: number): Promise<void> } {
  const slicer = portionSlicer(1 << 20, null);
  const frames: string[] = [];
  socket.on('data', (chunk: Buffer) => {
    slicer.push(chunk, (kind, body) => {
      frames.push(kind === ANSWER ? `${kind}:${readAnswer(body).number}` : `${kind}:${body}`);
      return true;
    });
  });
  return {
    frames,
    async until(count) {
      while (frames.length < count) await once(socket, 'data');
    },
  };
}

test('a caller is welcome once it was judged, and its questions are answered in their order', async (t) => {
  const { dial, judge } = await asked(t);
  const socket = await dial();
  const told = framesOf(socket);
  for (const byte of BEGIN) socket.write(Buffer.of(byte));
  await judge(true);
  await told.until(1);
  socket.write(Buffer.concat([questionFrame(3, QUESTION_ONE) as Buffer, questionFrame(1, QUESTION_ONE) as Buffer]));
  await told.until(3);
  assert.deepEqual(told.frames, [`${HELLO}:`, `${ANSWER}:3`, `${ANSWER}:1`]);
});

for (const [name, bytes, reason] of [
  ['another preface', Buffer.from('TROUPE READS 9\n and more'), 'that is no stream of portions'],
  [
    'a question before the hello',
    Buffer.concat([READS_PREFACE, questionFrame(1, QUESTION_ONE) as Buffer]),
    'a frame of the kind 2 at the wrong place',
  ],
  ['a question before the welcome', Buffer.concat([BEGIN, questionFrame(1, QUESTION_ONE) as Buffer]), 'too many questions too early'],
  ['two hellos', Buffer.concat([BEGIN, frameOf(HELLO, GREETING)]), 'a frame of the kind 0 at the wrong place'],
  ['a hello that says not who calls', Buffer.concat([READS_PREFACE, frameOf(HELLO, Buffer.of(0x0a))]), ''],
  [
    'a frame that is too long',
    Buffer.concat([READS_PREFACE, Buffer.of(255, 255, 255, 255, HELLO)]),
    'a frame of 4294967295 bytes; at most 262144 are taken',
  ],
] as const) {
  test(`${name} ends the connection, and the caller hears why`, async (t) => {
    const { dial, state } = await asked(t);
    const socket = await dial();
    const { frames } = framesOf(socket);
    socket.write(bytes);
    await once(socket, 'close');
    assert.equal(frames.length, 1);
    assert.ok(frames[0]?.startsWith(`${REFUSAL}:${reason}`), frames[0]);
    assert.equal(state.answered, 0);
  });
}

test('bytes that are no question end a connection that was welcome, and nothing else', async (t) => {
  const { dial, judge } = await asked(t);
  const [bad, good] = [await dial(), await dial()];
  const [toldBad, toldGood] = [framesOf(bad), framesOf(good)];
  for (const socket of [bad, good]) {
    socket.write(BEGIN);
    await judge(true);
  }
  await Promise.all([toldBad.until(1), toldGood.until(1)]);
  bad.write(frameOf(QUESTION, Buffer.alloc(20)));
  await once(bad, 'close');
  assert.deepEqual(toldBad.frames.slice(1), [`${REFUSAL}:a question that is too short`]);
  good.write(questionFrame(1, QUESTION_ONE) as Buffer);
  await toldGood.until(2);
});

test('who may ask is judged anew after a second: questions wait for that, and a caller that may not ask any more is answered nothing', async (t) => {
  const { dial, judge, state } = await asked(t);
  const stream = new PortionStream(GREETING, dial());
  t.after(() => stream.close());
  await judge(true);
  while (!stream.isOpen) await new Promise(setImmediate);
  assert.equal((await stream.ask(QUESTION_ONE, 5000))?.positions[0], 4);
  state.nowMs = 1000;
  const waiting = [stream.ask(QUESTION_ONE, 5000), stream.ask(QUESTION_ONE, 5000)];
  await judge(true);
  assert.deepEqual(
    (await Promise.all(waiting)).map((result) => result?.positions),
    [[4], [4]],
  );
  state.nowMs = 2000;
  const refused = stream.ask(QUESTION_ONE, 5000);
  await judge(false);
  assert.deepEqual([await refused, stream.isOver, state.answered], [null, true, 3]);
});

test('what was asked before a reader leaves is answered, and what comes later is for the main thread', async (t) => {
  const { askers, dial, judge } = await asked(t);
  const stream = new PortionStream(GREETING, dial());
  await judge(true);
  while (!stream.isOpen) await new Promise(setImmediate);
  const answered = Array.from({ length: 200 }, () => stream.ask(QUESTION_ONE, 5000));
  assert.equal((await Promise.all(answered)).filter((result) => result !== null).length, 200);
  const late = Array.from({ length: 200 }, () => stream.ask(QUESTION_ONE, 5000));
  askers[0]?.end();
  assert.deepEqual(new Set(await Promise.all(late)), new Set([null]));
  assert.equal(stream.isOver, true);
});

test('a caller that takes no answers is cut off', async (t) => {
  const { dial, judge, sockets, state } = await asked(t);
  const socket = await dial();
  const told = framesOf(socket);
  socket.write(BEGIN);
  await judge(true);
  await told.until(1);
  socket.removeAllListeners('data').pause();
  state.answerBytes = 8 << 20;
  const served = sockets[0] as Socket;
  for (let number = 0; !served.destroyed; number++) {
    socket.write(questionFrame(number, QUESTION_ONE) as Buffer);
    await new Promise(setImmediate);
  }
  assert.ok(state.answered >= 8 && state.answered < 24, `${state.answered}`);
});

test('an answer that does not come in time is given up, and the others go on', async (t) => {
  const server = createServer((socket) => {
    socket.once('data', () => socket.write(frameOf(HELLO, new Uint8Array(0))));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  const stream = new PortionStream(GREETING, Promise.resolve(socket));
  while (!stream.isOpen) await new Promise(setImmediate);
  const [long, short] = [stream.ask(QUESTION_ONE, 60_000), stream.ask(QUESTION_ONE, 10)];
  await assert.rejects(short, /not answered in time/);
  stream.close();
  assert.equal(await long, null);
});

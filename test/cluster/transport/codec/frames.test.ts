import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { decodeFrame, encodeHello, encodeMessages, messageBytes } from '../../../../cluster/transport/codec/frames.js';
import { decodeAnswer, decodeRequest, encodeAnswer, encodeRequest } from '../../../../cluster/transport/codec/requests.js';
import { TroupeError } from '../../../../protocols/errors.js';
import { asProto, constantName, FROM, peerMessage, peerReply, peerRequest, TO } from './samples.js';

const ROOT = fileURLToPath(new URL('../../../../../', import.meta.url));
const proto = protobuf.loadSync(join(ROOT, 'protocols/peer/peer.proto')).lookup('troupe.peer') as protobuf.Namespace;
const STREAM = { from: FROM, to: TO };

test('a frame of any messages reads as it was written', () => {
  fc.assert(
    fc.property(fc.array(peerMessage, { maxLength: 5 }), (messages) => {
      const { hello, messages: read, unknown } = decodeFrame(encodeMessages(messages), STREAM);
      assert.equal(hello, null);
      assert.equal(unknown, 0);
      assert.deepEqual(plain(read), plain(messages));
    }),
    { numRuns: 500 },
  );
});

test('protobufjs reads from a frame, by the .proto, what this codec has written, and the other way round', () => {
  const type = proto.lookupType('Frame');
  fc.assert(
    fc.property(fc.array(peerMessage, { maxLength: 3 }), (messages) => {
      const wanted = { messages: messages.map(asProto) };
      assert.deepEqual(comparable(type, type.decode(encodeMessages(messages))), comparable(type, type.fromObject(wanted)));
      assert.deepEqual(plain(decodeFrame(type.encode(type.fromObject(wanted)).finish(), STREAM).messages), plain(messages));
    }),
    { numRuns: 500 },
  );
});

test('protobufjs reads a hello, and its hello is read', () => {
  const type = proto.lookupType('Frame');
  const hello = { versions: { min: 1, max: 3 }, clusterId: 'some', from: 2 ** 47, to: 5, session: 2 ** 53 - 1, release: '0.1.0' };
  assert.deepEqual(comparable(type, type.decode(encodeHello(hello))), { hello: { ...stringified(hello), versions: hello.versions } });
  assert.deepEqual(decodeFrame(type.encode(type.fromObject({ hello })).finish(), null).hello, hello);
});

test('protobufjs reads requests and answers, and its own are read', () => {
  const versions = { min: 1, max: 2 };
  const requestType = proto.lookupType('Request');
  fc.assert(
    fc.property(peerRequest, (request) => {
      const { kind, ...fields } = request;
      const own = encodeRequest(request, versions);
      assert.deepEqual(plain(decodeRequest(own)), plain({ versions, request }));
      const wanted = { versions, [kind]: withVoter(withoutNulls(fields)) };
      assert.deepEqual(comparable(requestType, requestType.decode(own)), comparable(requestType, requestType.fromObject(wanted)));
      const theirs = requestType.encode(requestType.fromObject(wanted)).finish();
      assert.deepEqual(plain(decodeRequest(theirs)), plain({ versions, request }));
    }),
  );
  const replyType = proto.lookupType('Reply');
  fc.assert(
    fc.property(peerReply, (reply) => {
      const own = encodeAnswer(reply);
      assert.deepEqual(plain(decodeAnswer(own)), plain(reply));
      const { kind, ...fields } = reply;
      const inner = reply.kind === 'described' ? { ...reply.details, role: constantName(reply.details.role) } : fields;
      const wanted = { [kind]: inner };
      assert.deepEqual(comparable(replyType, replyType.decode(own)), comparable(replyType, replyType.fromObject(wanted)));
      assert.deepEqual(plain(decodeAnswer(replyType.encode(replyType.fromObject(wanted)).finish())), plain(reply));
    }),
  );
});

test('a failure crosses with its code, its detail, the time to wait, its reason and its outcome', () => {
  for (const facts of [
    { code: 'unavailable', detail: 'no leader', retryAfterMs: 250, outcome: 'none' },
    { code: 'conflict', detail: 'another leads', reason: 'notLeader', outcome: 'none' },
    { code: 'unavailable', detail: 'it is stopped', reason: 'actorCrashed', outcome: 'unknown' },
  ] as const)
    assert.deepEqual(decodeAnswer(encodeAnswer({ kind: 'failure', facts })), { kind: 'failure', facts });
  const byDefault = { code: 'timeout', detail: 'late' } as const;
  assert.deepEqual(decodeAnswer(encodeAnswer({ kind: 'failure', facts: byDefault })), {
    kind: 'failure',
    facts: { ...byDefault, outcome: 'unknown' },
  });
});

test('of a later release, a code becomes internal, a reason is left out, and an outcome that is not known leaves it open', () => {
  const type = proto.lookupType('Reply');
  const read = (failure: object) => decodeAnswer(type.encode(type.fromObject({ failure })).finish());
  const wanted = (facts: object) => ({ kind: 'failure', facts });
  assert.deepEqual(read({ code: 'toString', detail: 'what' }), wanted({ code: 'internal', detail: 'what', outcome: 'unknown' }));
  const newer = { code: 'conflict', detail: 'what', reason: 'toString' };
  assert.deepEqual(read({ ...newer, outcome: 'none' }), wanted({ code: 'conflict', detail: 'what', outcome: 'none' }));
  assert.deepEqual(read({ ...newer, outcome: 'partly' }), wanted({ code: 'conflict', detail: 'what', outcome: 'unknown' }));
});

test('kinds and fields of a later release are stepped over: messages count as lost, an append with a strange entry as a whole', () => {
  const later = protobuf
    .parse(`
    syntax = "proto3";
    message Frame { repeated Message messages = 2; string news = 7; }
    message Message { oneof kind { Raft raft = 1; uint64 applied = 3; Gossip gossip = 9; } uint64 priority = 15; }
    message Gossip { string text = 1; }
    message Raft { uint64 term = 1; oneof kind { Append append = 6; ReadIndex read_index = 13; Gossip gossip = 40; } }
    message ReadIndex { uint64 id = 1; double weight = 8; }
    message Append { uint64 prev_index = 1; repeated Entry entries = 3; }
    message Entry { uint64 index = 1; oneof payload { bytes operation = 5; Gossip gossip = 6; } }
  `)
    .root.lookupType('Frame');
  const messages = [
    { gossip: { text: 'a' } },
    { applied: 5, priority: 3 },
    { raft: { term: 1, gossip: { text: 'b' } } },
    { raft: { term: 2, readIndex: { id: 8, weight: 0.5 } } },
    { raft: { term: 3, append: { prevIndex: 1, entries: [{ index: 2, gossip: { text: 'c' } }] } } },
  ];
  const frame = decodeFrame(later.encode(later.fromObject({ messages, news: 'none' })).finish(), STREAM);
  assert.deepEqual(frame.messages, [
    { kind: 'applied', index: 5 },
    { kind: 'raft', message: { kind: 'readIndex', from: FROM, to: TO, term: 2, id: 8 } },
  ]);
  assert.equal(frame.unknown, 3);
});

test('bytes that are no frame are a catalogue error, never a crash', () => {
  const check = (bytes: Uint8Array) => {
    for (const read of [
      () => decodeFrame(bytes, STREAM),
      () => decodeFrame(bytes, null),
      () => decodeRequest(bytes),
      () => decodeAnswer(bytes),
    ]) {
      try {
        read();
      } catch (error) {
        assert.ok(error instanceof TroupeError && error.code === 'malformedBody', String(error));
      }
    }
  };
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), check), { numRuns: 2000 });
  fc.assert(
    fc.property(
      fc.array(peerMessage, { minLength: 1, maxLength: 2 }),
      fc.nat(),
      fc.nat({ max: 255 }),
      fc.nat(),
      (messages, at, value, cut) => {
        const bytes = encodeMessages(messages);
        bytes[at % bytes.length] = value;
        check(bytes);
        check(bytes.subarray(0, cut % bytes.length));
      },
    ),
    { numRuns: 2000 },
  );
});

test('what is read does not keep the frame it came in', () => {
  const bytes = new Uint8Array(1000);
  const frame = Buffer.from(encodeMessages([appendOf(bytes)]));
  const [message] = decodeFrame(frame, STREAM).messages;
  assert.ok(message?.kind === 'raft' && message.message.kind === 'append');
  const [entry] = message.message.entries;
  assert.ok(entry?.payload.kind === 'operation');
  assert.notEqual(entry.payload.bytes.buffer, frame.buffer);
  assert.equal(entry.payload.bytes.buffer.byteLength, 1000);
});

test('the estimate of a message’s size covers what it carries', () => {
  const message = appendOf(new Uint8Array(1 << 20));
  const estimate = messageBytes(message);
  const real = encodeMessages([message]).length;
  assert.ok(estimate >= real && estimate < real + 200, `${estimate} for ${real}`);
});

function appendOf(bytes: Uint8Array) {
  const entries = [{ index: 2, term: 1, payload: { kind: 'operation' as const, bytes } }];
  const message = { kind: 'append' as const, from: FROM, to: TO, term: 1, prevIndex: 1, prevTerm: 1, entries, commit: 1, round: 1 };
  return { kind: 'raft' as const, message };
}

/** Bytes as arrays of numbers, objects without prototypes' differences, so that deepEqual compares values. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_key, item) => (item instanceof Uint8Array ? [...item] : item)));
}

/** With defaults: fields that are at their default may be written or not. */
function comparable(type: protobuf.Type, message: protobuf.Message): unknown {
  const object = type.toObject(message, { longs: String, bytes: String, enums: String, arrays: true, oneofs: false });
  return withoutDefaults(object);
}

function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDefaults);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value)
    .map(([key, item]) => [key, withoutDefaults(item)] as const)
    .filter(([, item]) => item !== '0' && item !== 0 && item !== false && item !== '' && !(Array.isArray(item) && item.length === 0));
  return Object.fromEntries(kept);
}

function stringified(object: object): object {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, typeof value === 'number' ? String(value) : value]));
}

function withoutNulls(object: object): object {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}

function withVoter(object: { member?: object }): object {
  return object.member === undefined ? object : { ...object, member: { ...object.member, voter: false } };
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import type { SegmentHandle, SegmentSet } from '../../../storage/segment/handle.js';
import { segmentLayout } from '../../../storage/segment/layout.js';
import type { CommonMemory } from '../../../storage/segment/shared-memory.js';
import { type SentSet, SentSets, type SetOwner } from '../../../storage/threads/sent-sets.js';

v8.setFlagsFromString('--expose-gc');
const collectGarbage = vm.runInNewContext('gc') as () => void;

const layout = segmentLayout(4, [], { ordered: false, readers: 0 });

function newMemory(): WebAssembly.Memory {
  return new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
}

function segment(id: number, memory: WebAssembly.Memory, common?: CommonMemory): SegmentHandle {
  const empty = { rows: 0, folder: null, payloadOffsets: null, payloadBytes: null, fieldIndexes: [], sparseIndexes: [] };
  return { id, kind: 'appendable', layout, memory, ...(common === undefined ? {} : { common }), ...empty };
}

const OWNER: SetOwner = { key: 'c/0', opening: 1 };

interface Came {
  readonly set: SegmentSet | null;
  /** Memories that came along, and segments that came whole. */
  readonly memories: number;
  readonly whole: readonly number[];
}

/** Sends sets over a real port. Returns how each came; the receiver holds the newest set of each replica, as readers do. */
function sender(): (set: SegmentSet, owner?: SetOwner) => Came {
  const [sends, receives] = [new SentSets(), new SentSets()];
  const held = new Map<string, SegmentSet | null>();
  const { port1, port2 } = new MessageChannel();
  return (sent, owner = OWNER) => {
    port1.postMessage(sends.pack(owner, sent));
    const { message } = receiveMessageOnPort(port2) as { message: SentSet };
    const set = receives.unpack(owner, message);
    held.set(owner.key, set);
    const whole = message.segments.filter((segment) => typeof segment !== 'number');
    return { set, memories: whole.filter(({ memory }) => memory !== null).length, whole: whole.map(({ id }) => id) };
  };
}

/** A number in the first bytes of a memory tells it from others. */
function marked(mark: number): WebAssembly.Memory {
  const memory = newMemory();
  new Uint32Array(memory.buffer)[0] = mark;
  return memory;
}

function marksOf(set: SegmentSet | null): (number | undefined)[] {
  return (set?.segments ?? []).map(({ memory }) => new Uint32Array(memory.buffer)[0]);
}

test('a segment goes over a port once, and later sets of its replica name it', () => {
  const send = sender();
  const [first, second, third] = [1, 2, 3].map((id) => segment(id, marked(id))) as [SegmentHandle, SegmentHandle, SegmentHandle];
  const steps: [SegmentHandle[], number[]][] = [
    [[first], [1]],
    [[first, second], [2]],
    [[first, second, third], [3]],
    [[second, third], []],
    // It is not in the set before.
    [[first, third], [1]],
    // Another object: something of it has changed.
    [[{ ...first }, third], [1]],
  ];
  for (const [segments, whole] of steps) {
    const came = send({ generation: 1, segments });
    assert.deepEqual([came.whole, came.memories], [whole, whole.length]);
    assert.deepEqual(marksOf(came.set), marksOf({ generation: 1, segments }));
  }
});

test('another replica with segments of the same numbers, and another opening of it, get their own', () => {
  const send = sender();
  const sent = segment(1, marked(1));
  const other = segment(1, marked(2));
  assert.deepEqual(send({ generation: 1, segments: [sent] }).whole, [1]);
  assert.deepEqual(marksOf(send({ generation: 1, segments: [other] }, { key: 'c/1', opening: 1 }).set), [2]);
  assert.deepEqual(send({ generation: 2, segments: [sent] }).whole, []);
  assert.deepEqual(send({ generation: 1, segments: [sent] }, { ...OWNER, opening: 2 }).whole, [1]);
});

test('no table keeps the segments of a replica that was let go of', async () => {
  const [sends, receives] = [new SentSets(), new SentSets()];
  const { port1, port2 } = new MessageChannel();
  const pass = (): [WeakRef<SegmentHandle>, WeakRef<SegmentHandle>] => {
    const sent = segment(1, marked(1));
    port1.postMessage(sends.pack(OWNER, { generation: 1, segments: [sent] }));
    const { message } = receiveMessageOnPort(port2) as { message: SentSet };
    const came = receives.unpack(OWNER, message)?.segments[0] as SegmentHandle;
    return [new WeakRef(sent), new WeakRef(came)];
  };
  const references = pass();
  await new Promise((done) => setImmediate(done));
  collectGarbage();
  assert.deepEqual(
    references.map((reference) => reference.deref()),
    [undefined, undefined],
  );
  assert.equal(receives.unpack(OWNER, { generation: 2, segments: [1] }), null);
});

test('the newest memory of small segments goes over a port once, older ones come along again', () => {
  const send = sender();
  const [first, second] = [marked(1), marked(2)];
  const inFirst = { thread: 7, number: 1 };
  const inSecond = { thread: 7, number: 2 };
  const steps: [SegmentHandle[], number][] = [
    [[segment(1, first, inFirst)], 1],
    [[segment(1, first, inFirst), segment(2, first, inFirst)], 0],
    [[segment(4, second, inSecond), segment(1, first, inFirst), segment(5, second, inSecond)], 2],
    [[segment(1, first, inFirst)], 1],
    [[segment(4, second, inSecond)], 0],
  ];
  for (const [segments, memories] of steps) {
    const came = send({ generation: 1, segments });
    assert.equal(came.memories, memories);
    assert.deepEqual(marksOf(came.set), marksOf({ generation: 1, segments }));
  }
});

test('two threads that make segments do not mix up their memories, and one that was replaced is forgotten at last', () => {
  const send = sender();
  for (let thread = 1; thread <= 20; thread++) {
    const memory = marked(thread);
    const next = () => ({ generation: 1, segments: [segment(1, memory, { thread, number: 1 })] });
    assert.equal(send(next()).memories, 1);
    const again = send(next());
    assert.deepEqual([again.memories, marksOf(again.set)], [0, [thread]]);
  }
  const again = send({ generation: 1, segments: [segment(1, marked(1), { thread: 1, number: 1 })] });
  assert.deepEqual([again.memories, marksOf(again.set)], [1, [1]]);
});

test('a segment that names a memory which never came is refused', () => {
  const packed: SentSet = { generation: 1, segments: [{ ...segment(9, newMemory(), { thread: 1, number: 1 }), memory: null }] };
  assert.throws(() => new SentSets().unpack(OWNER, packed), /segment 9 comes without its memory/);
});

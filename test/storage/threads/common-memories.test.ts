import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import type { SegmentHandle, SegmentSet } from '../../../storage/segment/handle.js';
import { segmentLayout } from '../../../storage/segment/layout.js';
import type { CommonMemory } from '../../../storage/segment/shared-memory.js';
import { CommonMemories, type SentSet } from '../../../storage/threads/common-memories.js';

const layout = segmentLayout(4, [], { ordered: false, readers: 0 });

function newMemory(): WebAssembly.Memory {
  return new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
}

function segment(id: number, memory: WebAssembly.Memory, common?: CommonMemory): SegmentHandle {
  const empty = { rows: 0, folder: null, payloadOffsets: null, payloadBytes: null, fieldIndexes: [], sparseIndexes: [] };
  return { id, kind: 'appendable', layout, memory, ...(common === undefined ? {} : { common }), ...empty };
}

/** Sends sets over a real port. Returns how each came, and how many of its memories came along. */
function sender(): (set: SegmentSet) => { set: SegmentSet; memories: number } {
  const [sends, receives] = [new CommonMemories(), new CommonMemories()];
  const { port1, port2 } = new MessageChannel();
  return (set) => {
    port1.postMessage(sends.pack(set));
    const { message } = receiveMessageOnPort(port2) as { message: SentSet };
    return { set: receives.unpack(message), memories: message.segments.filter(({ memory }) => memory !== null).length };
  };
}

/** A number in the first bytes of a memory tells it from others. */
function marked(mark: number): WebAssembly.Memory {
  const memory = newMemory();
  new Uint32Array(memory.buffer)[0] = mark;
  return memory;
}

function marksOf({ segments }: SegmentSet): (number | undefined)[] {
  return segments.map(({ memory }) => new Uint32Array(memory.buffer)[0]);
}

test('the newest memory of small segments goes over a port once, older ones and those of large segments each time', () => {
  const send = sender();
  const [first, second, own] = [marked(1), marked(2), marked(3)];
  const inFirst = { thread: 7, number: 1 };
  const inSecond = { thread: 7, number: 2 };
  const steps: [SegmentHandle[], number][] = [
    [[segment(1, first, inFirst)], 1],
    [[segment(1, first, inFirst), segment(2, first, inFirst), segment(3, own)], 1],
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
    const set = { generation: 1, segments: [segment(1, memory, { thread, number: 1 })] };
    assert.equal(send(set).memories, 1);
    assert.deepEqual([send(set).memories, marksOf(send(set).set)], [0, [thread]]);
  }
  const again = send({ generation: 1, segments: [segment(1, marked(1), { thread: 1, number: 1 })] });
  assert.deepEqual([again.memories, marksOf(again.set)], [1, [1]]);
});

test('a segment that names a memory which never came is refused', () => {
  const packed: SentSet = { generation: 1, segments: [{ ...segment(9, newMemory(), { thread: 1, number: 1 }), memory: null }] };
  assert.throws(() => new CommonMemories().unpack(packed), /segment 9 comes without its memory/);
});

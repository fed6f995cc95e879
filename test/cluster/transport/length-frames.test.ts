import assert from 'node:assert/strict';
import test from 'node:test';
import { FrameSlicer, frameOf } from '../../../cluster/transport/length-frames.js';

function slicer() {
  return new FrameSlicer({ bodyBytesMax: 1 << 20, kindMax: 1, preface: null, what: 'frames' });
}

test('a frame that is larger than what came of it at first comes whole, and so does the one behind it', () => {
  const body = Buffer.from(Array.from({ length: 300_001 }, (_, at) => at % 251));
  const all = Buffer.concat([frameOf(1, body), frameOf(0, Buffer.from('next'))]);
  for (const piece of [7001, 65_536, 65_541, 200_000]) {
    const got: [number, Buffer][] = [];
    const cutter = slicer();
    for (let at = 0; at < all.length; at += piece) {
      // What is written to these bytes afterwards changes nothing.
      const chunk = Buffer.from(all.subarray(at, at + piece));
      cutter.push(chunk, (kind, part) => got.push([kind, Buffer.from(part)]) > 0);
      chunk.fill(0);
    }
    assert.deepEqual(
      got.map(([kind]) => kind),
      [1, 0],
      `pieces of ${piece}`,
    );
    assert.ok(got[0]?.[1].equals(body));
    assert.equal(got[1]?.[1].toString(), 'next');
  }
});

test('a kind that is none is refused before its body comes', () => {
  const header = frameOf(2, Buffer.alloc(1000)).subarray(0, 5);
  assert.throws(() => slicer().push(header, () => true), /a frame of the unknown kind 2/);
});

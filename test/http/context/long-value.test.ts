import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LongWork } from '../../../actors/runtime/long-works.js';
import { LongList, LongObject, longList, plainCopy, writeJson } from '../../../http/context/long-value.js';
import { joined, TextBytes } from '../../../http/context/text-bytes.js';

/** The result, and how many times the work may have paused. */
function finish<Result>(steps: LongWork<Result>): { result: Result; pauses: number } {
  for (let pauses = 0; ; pauses++) {
    const step = steps.next();
    if (step.done === true) return { result: step.value, pauses };
  }
}

function jsonOf(value: unknown): string {
  const out = new TextBytes();
  finish(writeJson(out, value));
  return Buffer.concat(out.chunks()).toString();
}

const PLAIN = {
  none: undefined,
  name: 'ä "quoted"',
  list: [1, null, { deep: [true] }],
  empty: [],
  nothing: {},
  number: 1.5,
};

function longForm(): LongObject {
  return LongObject.of({
    ...PLAIN,
    list: longList([1, null, { deep: 'of these' }], (item) =>
      item === null || typeof item === 'number' ? item : LongObject.of({ deep: new LongList([true]) }),
    ),
    empty: new LongList([]),
    nothing: LongObject.of({}),
  });
}

test('a long value is printed byte for byte as the plain one', () => {
  assert.equal(jsonOf(longForm()), JSON.stringify(PLAIN));
  assert.equal(jsonOf(new LongList([undefined, 12345678901234567890n])), '[null,12345678901234567890]');
});

test('a copy of a long value is plain and shares nothing with its parts', () => {
  const part = { deep: [1] };
  const { result } = finish(plainCopy(LongObject.of({ parts: new LongList([part]), none: undefined, __proto__: { own: 1 } })));
  assert.deepEqual(result, { parts: [{ deep: [1] }] });
  assert.notEqual((result as { parts: object[] }).parts[0], part);
  assert.deepEqual(finish(plainCopy(longForm())).result, JSON.parse(JSON.stringify(PLAIN)));
});

test('an object has the member __proto__ as any other', () => {
  const { result } = finish(plainCopy(new LongObject([['__proto__', 1]])));
  assert.deepEqual(Object.keys(result as object), ['__proto__']);
});

test('an item is made when its turn to be printed comes, and a pause follows each', () => {
  const made: number[] = [];
  const steps = writeJson(
    new TextBytes(),
    longList([1, 2, 3], (item) => {
      made.push(item);
      return item;
    }),
  );
  for (const items of [[1], [1, 2], [1, 2, 3]]) {
    assert.equal(steps.next().done, false);
    assert.deepEqual(made, items);
  }
  assert.equal(steps.next().done, true);
});

test('bytes are joined in pieces of 256 KiB, in a buffer of their own', () => {
  const chunks = [Buffer.from('a'), Buffer.alloc((1 << 18) * 2 + 5, 'b'), Buffer.from('c')];
  const { pauses, result } = finish(joined(chunks));
  assert.ok(result.equals(Buffer.concat(chunks)));
  assert.equal(result.buffer.byteLength, result.length);
  assert.equal(pauses, 5);
});

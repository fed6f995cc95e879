import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { arrayPath, type JsonPath, nestedPath, parsePath, printPath } from '../../../protocols/model/json-path.js';
import { seeded } from '../../query/property.js';

const READ: readonly [string, string][] = [
  ['a', 'a'],
  ['a.b.c', 'a . b . c'],
  ['a[]', 'a each'],
  ['a[0].b', 'a #0 . b'],
  ['a[].b[]', 'a each . b each'],
  ['m[][]', 'm each each'],
  ['m[1][0]', 'm #1 #0'],
  ['"a.b"', 'a.b'],
  ['x."a.b"[]', 'x . a.b each'],
  ['ключ', 'ключ'],
  ['snake_case-1', 'snake_case-1'],
  ['__proto__.constructor', '__proto__ . constructor'],
  ['"say \\"hi\\""', 'say "hi"'],
];

for (const [text, steps] of READ) {
  test(`${text} is the path ${steps}`, () => {
    const path = parsePath(text) as JsonPath;
    const words = path.map((step, at) =>
      step.kind === 'key' ? `${at > 0 ? '. ' : ''}${step.key}` : step.kind === 'each' ? 'each' : `#${step.index}`,
    );
    assert.equal(words.join(' '), steps);
  });
}

for (const text of [
  '',
  'a..b',
  '.a',
  'a.',
  'a[',
  'a]',
  'a.[b',
  '[0]',
  'a[b]',
  'a[-1]',
  'a[1.5]',
  'a"b',
  '"a',
  'a[0]b',
  'a[99999999999]',
  '"a\\n"',
]) {
  test(`${JSON.stringify(text)} is no path`, () => {
    assert.equal(parsePath(text), undefined);
  });
}

test('a path has one canonical text, which reads as the same path', () => {
  const key = fc.oneof(fc.string(), fc.constantFrom('a', 'a.b', '', '[]', '"', '\\', '__proto__'));
  const step = fc.oneof(
    key.map((one) => ({ kind: 'key' as const, key: one })),
    fc.constant({ kind: 'each' as const }),
    fc.nat().map((index) => ({ kind: 'at' as const, index })),
  );
  fc.assert(
    fc.property(key, fc.array(step, { maxLength: 5 }), (first, rest) => {
      const path: JsonPath = [{ kind: 'key', key: first }, ...rest];
      assert.deepEqual(parsePath(printPath(path)), path);
    }),
    seeded(500),
  );
});

test('quotes that are not needed vanish', () => {
  assert.equal(printPath(parsePath('"a"."b.c"') as JsonPath), 'a."b.c"');
});

test('nested paths go through every element', () => {
  assert.equal(arrayPath('a'), 'a[]');
  assert.equal(arrayPath('a[]'), 'a[]');
  assert.equal(nestedPath('a', 'b'), 'a[].b');
  assert.equal(nestedPath('a[].b', 'c'), 'a[].b[].c');
});

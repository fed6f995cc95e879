import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson, stringifyJson } from '../../protocols/json.js';
import { parsePath, pathOf } from '../../protocols/model/json-path.js';
import type { JsonValue, Payload } from '../../protocols/model/payload.js';
import { someValue } from '../../query/filter/values.js';
import { deleteAtPath, mergePayload, payloadSelect, setAtPath } from '../../query/payload-edit.js';
import * as arbitrary from './filter/arbitrary.js';
import { seeded } from './property.js';

/** JSON text with bigint, so that `__proto__` and order count too. */
function text(value: unknown): string {
  return JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? `${member}n` : member));
}

function json(source: string): Payload {
  return JSON.parse(source) as Payload;
}

const SET: readonly [string, string, string, string][] = [
  ['{"n":{"x":1,"y":{"z":2}}}', 'n', '{"q":1}', '{"n":{"x":1,"y":{"z":2},"q":1}}'],
  ['{"n":{"x":1,"y":{"z":2}}}', 'n.y', '{"w":2}', '{"n":{"x":1,"y":{"z":2,"w":2}}}'],
  ['{"a":2}', 'made.up.path', '{"fresh":true}', '{"a":2,"made":{"up":{"path":{"fresh":true}}}}'],
  ['{"l":[{"v":1},{"v":2}]}', 'l[]', '{"e":9}', '{"l":[{"v":1,"e":9},{"v":2,"e":9}]}'],
  ['{"l":[{"v":1},{"v":2}]}', 'l[0]', '{"o":1}', '{"l":[{"v":1,"o":1},{"v":2}]}'],
  ['{"l":[{"v":1}]}', 'l[7]', '{"no":1}', '{"l":[{"v":1}]}'],
  ['{"a":2}', 'a', '{"under":1}', '{"a":{"under":1}}'],
  ['{}', 'arr[].x', '{"under":1}', '{"arr":[]}'],
  ['{"n":{"x":1}}', 'n', '{"x":null}', '{"n":{}}'],
  ['{}', '__proto__', '{"polluted":1}', '{"__proto__":{"polluted":1}}'],
  ['{}', 'constructor.prototype', '{"polluted":1}', '{"constructor":{"prototype":{"polluted":1}}}'],
];

for (const [before, path, patch, after] of SET) {
  test(`${patch} at ${path} of ${before} makes ${after}`, () => {
    assert.equal(text(setAtPath(json(before), path, json(patch))), after);
  });
}

const DELETED: readonly [string, string, string][] = [
  ['{"a":1,"b":2}', 'a', '{"b":2}'],
  ['{"n":{"x":1,"y":{"z":2}}}', 'n.y.z', '{"n":{"x":1,"y":{}}}'],
  ['{"l":[{"v":1},{"v":2,"w":3}]}', 'l[].v', '{"l":[{},{"w":3}]}'],
  ['{"l":[1,2]}', 'l[]', '{"l":[]}'],
  ['{"l":[1,2]}', 'l[0]', '{"l":[2]}'],
  ['{"l":[1,2]}', 'l[5]', '{"l":[1,2]}'],
  ['{"p.q":1,"p":{"q":2}}', '"p.q"', '{"p":{"q":2}}'],
  ['{"a":1}', 'nothing.here', '{"a":1}'],
  ['{"__proto__":1,"a":2}', '__proto__', '{"a":2}'],
  ['{"a":1}', 'toString', '{"a":1}'],
];

for (const [before, path, after] of DELETED) {
  test(`${before} without ${path} is ${after}`, () => {
    assert.equal(text(deleteAtPath(json(before), path)), after);
  });
}

const WHOLE =
  '{"name":"one","geo":{"lat":1.5,"lon":2.5},"items":[{"k":"x","v":1},{"k":"y","v":2}],"deep":{"er":{"est":"bottom","other":1}},"a.b":"dotted"}';
const INCLUDED: readonly [string[], string][] = [
  [['name'], '{"name":"one"}'],
  [['deep.er.est', 'geo.lat'], '{"geo":{"lat":1.5},"deep":{"er":{"est":"bottom"}}}'],
  [['items[].k'], '{"items":[{"k":"x"},{"k":"y"}]}'],
  [['items[0].k'], '{"items":[]}'],
  [['items', 'items[].k'], '{"items":[{"k":"x","v":1},{"k":"y","v":2}]}'],
  [['"a.b"'], '{"a.b":"dotted"}'],
  [['a.b'], '{}'],
  [['nothing'], '{}'],
  [[], '{}'],
];

for (const [keys, after] of INCLUDED) {
  test(`include ${keys} answers ${after}`, () => {
    assert.equal(text(payloadSelect(json(WHOLE), { kind: 'include', keys })), after);
  });
}

test('exclude takes keys away, all and none do what they say', () => {
  const excluded = payloadSelect(json(WHOLE), { kind: 'exclude', keys: ['items[].v', 'deep.er.est', 'geo', '"a.b"'] });
  assert.equal(text(excluded), '{"name":"one","items":[{"k":"x"},{"k":"y"}],"deep":{"er":{"other":1}}}');
  assert.equal(text(payloadSelect(json(WHOLE), { kind: 'all' })), WHOLE);
  assert.equal(payloadSelect(json(WHOLE), { kind: 'none' }), undefined);
});

test('a merge replaces whole values, and null takes a key away', () => {
  assert.equal(text(mergePayload(json('{"a":{"x":1},"b":1}'), json('{"a":{"y":2},"b":null,"c":null}'))), '{"a":{"y":2}}');
  assert.equal(text(mergePayload({}, json('{"__proto__":{"x":1}}'))), '{"__proto__":{"x":1}}');
});

test('edits never change what they were given, nor any prototype', () => {
  const path = fc.constantFrom<string>(...arbitrary.KEYS, 'k[1].j', '__proto__.j', 'constructor.prototype');
  fc.assert(
    fc.property(arbitrary.payload, path, arbitrary.payload, (payload, at, patch) => {
      const before = text(payload);
      freeze(payload);
      freeze(patch);
      setAtPath(payload, at, patch);
      deleteAtPath(payload, at);
      payloadSelect(payload, { kind: 'include', keys: [at] });
      payloadSelect(payload, { kind: 'exclude', keys: [at] });
      assert.equal(text(payload), before);
      assert.deepEqual(Object.keys(Object.prototype), []);
      assert.equal(Object.getPrototypeOf(setAtPath(payload, at, patch)), Object.prototype);
    }),
    seeded(1000),
  );
});

test('what was set at a path of keys is there, and what was deleted is not', () => {
  const path = fc.constantFrom('k', 'k.j', 'm', '__proto__', '"d.t"', 'k.j.x');
  fc.assert(
    fc.property(arbitrary.payload, path, (payload, at) => {
      const there = `${at}.mark`;
      const set = setAtPath(payload, at, { mark: 'set' });
      assert.ok(someValue(set, pathOf(there), (value) => value === 'set'));
      assert.ok(!someValue(deleteAtPath(set, there), pathOf(there), () => true));
      assert.ok(!someValue(deleteAtPath(payload, at), pathOf(at), () => true));
      assert.ok(parsePath(there));
    }),
    seeded(500),
  );
});

function freeze(value: JsonValue): void {
  if (typeof value !== 'object' || value === null) return;
  Object.freeze(value);
  for (const child of Object.values(value)) freeze(child);
}

test('numbers stay written as floats through every edit, and only these', () => {
  const read = (source: string) => parseJson(source) as Payload;
  const whole = read('{"a":1.0,"b":2,"c":{"d":3.0},"e":[4.0,5,{"f":6.0}]}');
  assert.equal(
    stringifyJson(mergePayload(whole, read('{"a":7,"b":8.0,"g":{"h":9.0}}'))),
    '{"a":7,"b":8.0,"c":{"d":3.0},"e":[4.0,5,{"f":6.0}],"g":{"h":9.0}}',
  );
  assert.equal(stringifyJson(mergePayload(read('{"a":1}'), read('{"b":2.0}'))), '{"a":1,"b":2.0}');
  assert.equal(stringifyJson(mergePayload(whole, read('{"a":null,"c":null}'))), '{"b":2,"e":[4.0,5,{"f":6.0}]}');
  assert.equal(stringifyJson(setAtPath(read('{"x":{"y":1}}'), 'x.z', read('{"w":2.0}'))), '{"x":{"y":1,"z":{"w":2.0}}}');
  assert.equal(
    stringifyJson(setAtPath(whole, 'e[2]', read('{"f":1,"g":2.0}'))),
    '{"a":1.0,"b":2,"c":{"d":3.0},"e":[4.0,5,{"f":1,"g":2.0}]}',
  );
  assert.equal(stringifyJson(deleteAtPath(whole, 'e[0]')), '{"a":1.0,"b":2,"c":{"d":3.0},"e":[5,{"f":6.0}]}');
  assert.equal(stringifyJson(deleteAtPath(whole, 'c.d')), '{"a":1.0,"b":2,"c":{},"e":[4.0,5,{"f":6.0}]}');
  const select = (keys: string[]) => stringifyJson(payloadSelect(whole, { kind: 'include', keys }));
  assert.deepEqual(
    [select(['a', 'b']), select(['c.d']), select(['e[]']), select(['e[].f'])],
    ['{"a":1.0,"b":2}', '{"c":{"d":3.0}}', '{"e":[4.0,5,{"f":6.0}]}', '{"e":[{"f":6.0}]}'],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TroupeError } from '../../protocols/errors.js';
import { parseExactly, parseJson, parseStored, parseValues, setMember, stringifyJson, writtenAsFloat } from '../../protocols/json.js';
import type { JsonValue } from '../../protocols/model/payload.js';

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

function refusal(text: string): string {
  try {
    parseJson(utf8(text));
  } catch (error) {
    assert.ok(error instanceof TroupeError);
    assert.equal(error.code, 'malformedBody');
    return error.detail;
  }
  return assert.fail(`was read: ${text}`);
}

test('integers beyond 2^53 keep their digits, wherever they stand', () => {
  for (const digits of ['9223372036854775807', '-9223372036854775808', '18446744073709551615', '9007199254740993']) {
    for (let pad = 0; pad < 20; pad++) {
      const text = `${' '.repeat(pad)}{"a":[1,${digits}],"b":{"c":${digits}}}`;
      assert.equal(stringifyJson(parseJson(utf8(text))), text.trim());
    }
    assert.equal(parseJson(digits), BigInt(digits));
  }
  assert.equal(parseJson('9007199254740991'), 9007199254740991);
  assert.equal(parseJson('18446744073709551616'), 18446744073709552000);
});

test('long fractions, and digits within strings, stay on the fast way and come out as JSON.parse has them', () => {
  const text = '{"v":[0.12345678901234567,-1.2345678901234567e-5],"id":"12345678901234567890","t":"a 12345678901234567890"}';
  assert.deepEqual(parseJson(utf8(text)), JSON.parse(text));
});

test('numbers beyond a double are refused with their place', () => {
  assert.equal(refusal('{"points":[{"id":1,"vector":[1e400,0,0,0]}]}'), 'number out of range at line 1 column 34');
  assert.equal(refusal(`[${'9'.repeat(400)}]`), 'number out of range at line 1 column 401');
  assert.deepEqual(parseJson('[1e300,1E+299,1e-400]'), [1e300, 1e299, 0]);
});

test('broken texts are refused with line and column', () => {
  assert.equal(refusal('{"vector": [1,2,3,4], "limit": '), 'the JSON ends early, inside a value, at line 1 column 31');
  assert.equal(refusal('this is not json'), 'expected ident at line 1 column 2');
  assert.equal(refusal('{"vector": [1,2,3,4], "limit": 3,}'), 'trailing comma at line 1 column 34');
  assert.equal(refusal('{"vector": [1,2,3,4], "limit": 3} xyz'), 'trailing characters at line 1 column 35');
  assert.equal(refusal("{'vector': [1,2,3,4]}"), 'key must be a string at line 1 column 2');
  assert.equal(refusal(''), 'the body is empty: expected JSON');
  assert.equal(refusal('{"points":[{"id":1,"vector":[NaN,0]}]}'), 'expected value at line 1 column 30');
  assert.equal(refusal('{\n "a": 01}'), 'expected `,` or `}` at line 2 column 8'.replace('expected `,` or `}`', 'invalid number'));
  assert.match(refusal('["\u0001"]'), /control character/);
  assert.match(refusal('["\\x"]'), /invalid escape/);
  assert.match(refusal(`${'['.repeat(600)}${']'.repeat(600)} x`), /recursion limit/);
});

test('a valid text that is nested too deep is refused: the parser of the machine takes it, and whoever reads its value goes as deep', () => {
  const nested = (depth: number, inner: string) => '{"a":'.repeat(depth) + inner + '}'.repeat(depth);
  assert.doesNotThrow(() => parseJson(nested(511, '[1,2]')));
  for (const text of [nested(513, '1'), nested(1000, '[]'), `[[],${'['.repeat(600)}${']'.repeat(600)}]`, nested(512, '[1,2]')])
    assert.match(refusal(text), /recursion limit/);
  const long = nested(50_000, '1');
  assert.doesNotThrow(() => parseJson(long), 'too long to be looked at closely');
  assert.throws(() => parseJson(long, 0), /recursion limit/);
});

test('a key given twice in the outermost object is refused, further in the last one counts', () => {
  assert.equal(refusal('{"vector": [1,2,3,4], "limit": 3, "limit": 4}'), 'duplicate field `limit` at line 1 column 41');
  assert.deepEqual(parseJson('{"a":{"b":1,"b":2},"c":"x:\\":y","d":["p:q",{"r":1}]}'), { a: { b: 2 }, c: 'x:":y', d: ['p:q', { r: 1 }] });
});

test('bytes that are no UTF-8 are refused', () => {
  assert.throws(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22)), { code: 'malformedBody' });
});

test('an integer field written as a float can be told from an integer', () => {
  const body = parseJson('{"limit":3.0,"offset":3,"score_threshold":2.5}') as { [key: string]: JsonValue };
  assert.deepEqual(
    [writtenAsFloat(body, 'limit'), writtenAsFloat(body, 'offset'), writtenAsFloat(body, 'score_threshold')],
    [true, false, false],
  );
  const far = parseJson(`{"pad":"${'x'.repeat(70_000)}","points":[{"id": 5.0}]}`) as { points: [object] };
  assert.equal(writtenAsFloat(far.points[0], 'id'), true);
});

test('what was written as a float is printed as one, at any depth and of any form', () => {
  const same = (text: string) => assert.equal(stringifyJson(parseJson(utf8(text))), text);
  same('{"a":1.0,"b":[2.0,2,{"c":-3.0}],"d":{"e":{"f":0.0}},"g":1.5,"h":1}');
  same('[[[7.0]]]');
  assert.equal(
    stringifyJson(parseJson('[-0.0,1e2,1.50E+1,30e-1,5e-0,1e21,12345678901234567.5]')),
    '[-0.0,100.0,15.0,3.0,5.0,1e+21,12345678901234568.0]',
  );
  assert.deepEqual(parseJson('{"a":1.0,"b":[2.0]}'), { a: 1, b: [2] }, 'for who reads the value it is the number');
  const within = parseJson('{"a":1.0}');
  assert.equal(stringifyJson({ around: [within] }, within), '{"around":[{"a":1.0}]}');
  assert.equal(
    stringifyJson(parseJson('{"a":1.0,"a":2}'.replace('{', '{"o":{').replace(/\}$/, '}}'))),
    '{"o":{"a":2}}',
    'the last one counts',
  );
});

test('texts that only look as if they had floats stay on the fast way', () => {
  for (const text of ['{"u":"550e8400-1e4f-41d4-a716-446655440000","v":"v2.0","w":[0.05,1e-5,10.01]}', '"1e5"']) {
    assert.deepEqual(parseJson(text), JSON.parse(text));
    assert.equal(stringifyJson(parseJson(text)), JSON.stringify(JSON.parse(text)));
  }
});

test('a text of points, digits and exponents without end is looked through once', () => {
  for (const part of ['.0', '1.0', '0.0e', '-1e-']) {
    const text = JSON.stringify(part.repeat(1_000_000));
    assert.equal(parseJson(text), JSON.parse(text));
  }
});

test('half of a surrogate pair is refused with its place, a whole pair is a character', () => {
  for (const text of ['{"a":"x\\ud800"}', '{"a":"x\\uDC00"}', '{"a":"x\\ud83dx"}', '{"a":"x\\ud83d\\ud83d"}']) {
    assert.match(refusal(text), /^lone surrogate.* at line 1 column 13$/);
  }
  assert.equal(parseJson('"\\ud83d\\ude00"'), '😀');
  assert.equal(stringifyJson(parseStored('["\\ud800",1.0]')), '["\\ud800",1.0]', 'as earlier releases stored it');
});

test('who only looks at stored values gets numbers, with all digits of integers', () => {
  assert.equal(
    stringifyJson(parseValues(utf8('{"a":1.0,"b":12345678901234567890}'))).replace('1.0', '1'),
    '{"a":1,"b":12345678901234567890}',
  );
});

test('__proto__ and constructor are ordinary keys', () => {
  const object = parseJson('{"__proto__":{"a":1},"constructor":2,"big":9007199254740993}') as { [key: string]: JsonValue };
  assert.equal(stringifyJson(object), '{"__proto__":{"a":1},"constructor":2,"big":9007199254740993}');
  const copy: { [key: string]: JsonValue } = {};
  setMember(copy, '__proto__', 1);
  assert.equal(stringifyJson(copy), '{"__proto__":1}');
});

test('values without JSON form print as null, lone surrogates as escapes', () => {
  assert.equal(stringifyJson([Number.NaN, Number.POSITIVE_INFINITY, '\ud800', 1n]), '[null,null,"\\ud800",1]');
});

test('the exact parser agrees with JSON.parse on every JSON text', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), (text) => {
      const exact = parseExactly(text);
      assert.deepEqual(JSON.parse(stringifyJson(exact)), JSON.parse(text));
    }),
    { numRuns: 300, seed: 7 },
  );
});

test('whatever JSON.parse refuses is refused, and nothing else', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:0123.-+eE tfnul\\\n'), maxLength: 24 }), (text) => {
      let valid = true;
      try {
        JSON.parse(text);
      } catch {
        valid = false;
      }
      let read = true;
      try {
        parseExactly(text);
      } catch {
        read = false;
      }
      if (read !== valid) assert.ok(valid && /duplicate|e\+?\d{3}|E\+?\d{3}|""/.test(text), text);
    }),
    { numRuns: 3000, seed: 11 },
  );
});

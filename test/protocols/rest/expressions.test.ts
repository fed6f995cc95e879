import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { JsonValue } from '../../../protocols/model/payload.js';
import { formulaOf } from '../../../protocols/rest/expressions.js';

const expression = (formula: unknown) => formulaOf({ formula: formula as JsonValue }).expression;

function refuses(decode: () => unknown, code: string): void {
  assert.throws(decode, (error: unknown) => error instanceof TroupeError && error.code === code);
}

test('numbers, scores and payload paths are expressions', () => {
  assert.deepEqual(expression(2.5), { kind: 'constant', value: 2.5 });
  assert.deepEqual(expression('$score'), { kind: 'score', prefetch: 0 });
  assert.deepEqual(expression('$score[2]'), { kind: 'score', prefetch: 2 });
  assert.deepEqual(expression('"a".b[0]'), { kind: 'variable', path: 'a.b[0]' });
  for (const name of ['$rank', '$score[', '$score[x]', '', 'a..b']) refuses(() => expression(name), 'wrongInput');
});

test('operations nest', () => {
  assert.deepEqual(expression({ sum: ['$score', { mult: [2, { neg: 'n' }] }] }), {
    kind: 'sum',
    terms: [
      { kind: 'score', prefetch: 0 },
      {
        kind: 'mult',
        terms: [
          { kind: 'constant', value: 2 },
          { kind: 'neg', of: { kind: 'variable', path: 'n' } },
        ],
      },
    ],
  });
  for (const formula of [{ sum: 5 }, { sum: [true] }, { cube: 2 }, null, true, { div: { left: 1 } }, { neg: null }, [1]]) {
    refuses(() => expression(formula), 'malformedBody');
  }
});

test('an object that is no operation is a condition, and the empty one holds for every point', () => {
  const { kind } = expression({ key: 'city', match: { value: 'Berlin' } });
  assert.equal(kind, 'condition');
  assert.deepEqual(expression({}), {
    kind: 'condition',
    condition: { kind: 'filter', filter: { must: [], should: [], mustNot: [], minShould: null } },
  });
});

test('scale and midpoint of a decay are checked', () => {
  const decay = (kind: string, more: object) => () => expression({ [kind]: { x: 'x', ...more } });
  assert.deepEqual(decay('exp_decay', {})(), {
    kind: 'expDecay',
    x: { kind: 'variable', path: 'x' },
    target: null,
    scale: null,
    midpoint: null,
  });
  for (const kind of ['exp_decay', 'gauss_decay', 'lin_decay']) {
    for (const scale of [0, -5]) refuses(decay(kind, { scale }), 'wrongInput');
    refuses(() => expression({ [kind]: { scale: 5 } }), 'malformedBody');
    const ends = kind === 'lin_decay' ? [-0.1, 1.1] : [0, 1];
    for (const midpoint of ends) refuses(decay(kind, { midpoint }), 'wrongInput');
  }
  decay('lin_decay', { midpoint: 0 })();
  decay('lin_decay', { midpoint: 1 })();
});

test('places and times are checked', () => {
  assert.deepEqual(expression({ datetime: '1970-01-01T00:01:00Z' }), { kind: 'datetime', seconds: 60 });
  assert.deepEqual(expression({ datetime_key: 'a.b' }), { kind: 'datetimeKey', path: 'a.b' });
  refuses(() => expression({ datetime: 'tomorrow' }), 'wrongInput');
  const origin = { lat: 52.5, lon: 13.4 };
  assert.deepEqual(expression({ geo_distance: { origin, to: 'g' } }), { kind: 'geoDistance', origin, path: 'g' });
  refuses(() => expression({ geo_distance: { origin: { lat: 100, lon: 0 }, to: 'g' } }), 'malformedBody');
  refuses(() => expression({ geo_distance: { origin, to: 5 } }), 'malformedBody');
});

test('defaults are named as the formula names them', () => {
  const { defaults } = formulaOf({ formula: 1, defaults: { $score: 1, '$score[1]': 2, '"a"[0]': { lat: 1, lon: 2 } } });
  assert.deepEqual(defaults, { '$score[0]': 1, '$score[1]': 2, 'a[0]': { lat: 1, lon: 2 } });
  refuses(() => formulaOf({ formula: 1, defaults: 5 }), 'malformedBody');
  refuses(() => formulaOf({ formula: 1, defaults: { $score: 'x' } }), 'wrongInput');
  const hostile = formulaOf({ formula: '__proto__', defaults: JSON.parse('{"__proto__": 3}') as { [key: string]: JsonValue } });
  assert.ok(Object.hasOwn(hostile.defaults, '__proto__'));
});

test('a formula deeper than 128 levels is refused', () => {
  const nested = (depth: number): JsonValue => {
    let formula: JsonValue = 1;
    for (let level = 1; level < depth; level++) formula = { neg: formula };
    return formula;
  };
  expression(nested(128));
  refuses(() => expression(nested(129)), 'malformedBody');
});

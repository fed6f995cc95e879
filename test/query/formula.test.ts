import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../protocols/errors.js';
import type { JsonValue, Payload } from '../../protocols/model/payload.js';
import { formulaOf } from '../../protocols/rest/expressions.js';
import { formulaScore } from '../../query/formula.js';

const PAYLOAD: Payload = {
  n: 4,
  big: 9007199254740993n,
  text: 'x',
  list: [6, 7],
  one: [6],
  empty: [],
  none: null,
  g: { lat: 48.8566, lon: 2.3522 },
  d: '2024-01-11',
};

/** Scores of the prefetches: the first found the point, the second did not. */
function score(formula: unknown, defaults: { [name: string]: JsonValue } = {}): number {
  const decoded = formulaOf({ formula: formula as JsonValue, defaults });
  return formulaScore(decoded, {
    score: (prefetch) => (prefetch === 0 ? 2 : undefined),
    payload: () => PAYLOAD,
    passes: (condition) => condition.kind === 'hasId',
  });
}

function refuses(formula: unknown, message: RegExp, defaults: { [name: string]: JsonValue } = {}): void {
  assert.throws(
    () => score(formula, defaults),
    (error) => error instanceof TroupeError && error.code === 'wrongInput' && message.test(error.detail),
  );
}

test('scores of prefetches are variables, 0 or the default where the point was not found', () => {
  assert.equal(score('$score'), 2);
  assert.equal(score('$score[0]', { $score: 9 }), 2);
  assert.equal(score('$score[1]'), 0);
  assert.equal(score('$score[1]', { '$score[1]': -1 }), -1);
});

test('payload values are variables; a list stands for its element if it has one', () => {
  assert.equal(score('n'), 4);
  assert.equal(score('big'), 2 ** 53);
  assert.equal(score('one'), 6);
  refuses('list', /not a number/, { list: 3 });
  refuses('list[]', /not a number/, { 'list[]': 3 });
  assert.equal(score('list[1]'), 7);
});

test('a missing value has its default or is an error, a value of another type always is one', () => {
  assert.equal(score('zzz', { zzz: 3 }), 3);
  assert.equal(score('empty', { empty: 3 }), 3);
  refuses('zzz', /No value found/);
  refuses('empty', /No value found/);
  refuses('none', /not a number/, { none: 3 });
  refuses('text', /not a number/, { text: 3 });
  refuses('zzz', /not a number/, { zzz: 'x' });
  refuses('__proto__', /No value found/);
  refuses('constructor', /No value found/);
});

test('arithmetic', () => {
  assert.equal(score({ sum: ['$score', 'n', 0.5] }), 6.5);
  assert.equal(score({ sum: [] }), 0);
  assert.equal(score({ mult: ['$score', 'n', 0.5] }), 4);
  assert.equal(score({ mult: [] }), 1);
  assert.equal(score({ abs: { neg: 'n' } }), 4);
  assert.equal(score({ neg: 0 }), 0);
  assert.equal(score({ div: { left: 'n', right: '$score' } }), 2);
  assert.equal(score({ div: { left: 'n', right: 0, by_zero_default: 7 } }), 7);
  assert.equal(score({ pow: { base: 2, exponent: 3 } }), 8);
  assert.equal(score({ sqrt: 'n' }), 2);
  assert.equal(score({ ln: { exp: 2 } }), 2);
  assert.equal(score({ log10: 100 }), 2);
});

test('a product that is 0 does not ask for the rest', () => {
  assert.equal(score({ mult: [{ key: 'a', match: { value: 1 } }, 'zzz'] }), 0);
});

test('a number that is not finite is an error that names the expression', () => {
  refuses({ div: { left: 1, right: 0 } }, /1\/0 = inf /);
  refuses({ sqrt: { neg: 1 } }, /√-1 = NaN/);
  refuses({ ln: 0 }, /ln\(0\)/);
  refuses({ pow: { base: -1, exponent: 0.5 } }, /-1\^0\.5/);
  refuses({ exp: 1000 }, /exp\(1000\)/);
  refuses(1e39, /the formula/);
});

test('a condition is 1 or 0', () => {
  assert.equal(score({ has_id: [1] }), 1);
  assert.equal(score({ key: 'a', match: { value: 1 } }), 0);
});

test('a decay is 1 at the target and the midpoint at the scale', () => {
  const decay = (kind: string, more: object) => score({ [kind]: { x: 'n', ...more } });
  for (const kind of ['lin_decay', 'exp_decay', 'gauss_decay']) {
    assert.equal(decay(kind, { target: 4 }), 1);
    assert.equal(decay(kind, { target: 14, scale: 10 }), 0.5);
    assert.equal(decay(kind, { target: -6, scale: 10, midpoint: 0.25 }), 0.25);
  }
  assert.equal(decay('lin_decay', { target: 9, scale: 10 }), 0.75);
  assert.equal(decay('lin_decay', {}), 0);
  assert.equal(decay('exp_decay', { target: 9, scale: 10 }), Math.fround(Math.SQRT1_2));
  assert.equal(decay('gauss_decay', { target: 9, scale: 10 }), Math.fround(0.5 ** 0.25));
});

test('distances are in metres and times in seconds', () => {
  assert.ok(Math.abs(score({ geo_distance: { origin: { lat: 52.52, lon: 13.405 }, to: 'g' } }) - 877464.56) < 0.1);
  assert.equal(score({ geo_distance: { origin: { lat: 1, lon: 1 }, to: 'zzz' } }, { zzz: { lat: 1, lon: 1 } }), 0);
  refuses({ geo_distance: { origin: { lat: 1, lon: 1 }, to: 'n' } }, /geo point/);
  assert.equal(score({ sum: [{ datetime_key: 'd' }, { neg: { datetime: '2024-01-01' } }] }), 864_000);
  assert.equal(score({ sum: [{ datetime_key: 'zzz' }, { neg: { datetime: '2024-01-01' } }] }, { zzz: '2024-01-02' }), 86_400);
  refuses({ datetime_key: 'n' }, /datetime/);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseDatetime } from '../../protocols/datetime.js';
import { seeded } from '../query/property.js';

const TEN = Date.UTC(2024, 2, 1, 10) * 1000;

const READ: readonly [string, number][] = [
  ['2024-03-01T10:00:00Z', TEN],
  ['2024-03-01T12:00:00+02:00', TEN],
  ['2024-03-01T12:00:00+0200', TEN],
  ['2024-03-01T12:00:00+02', TEN],
  ['2024-03-01T04:30:00-05:30', TEN],
  ['2024-03-01T10:00:00', TEN],
  ['2024-03-01 10:00:00', TEN],
  ['2024-03-01T10:00', TEN],
  ['2024-03-01t10:00:00z', TEN],
  ['2024-03-01', TEN - 36e9],
  ['2024-03-01T10:00:00.123456Z', TEN + 123_456],
  ['2024-03-01T10:00:00.5', TEN + 500_000],
  ['2024-03-01T10:00:00.123456789Z', TEN + 123_456],
  ['1969-07-20T20:17:40Z', Date.UTC(1969, 6, 20, 20, 17, 40) * 1000],
  ['2024-02-29', Date.UTC(2024, 1, 29) * 1000],
  ['2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1) * 1000],
];

for (const [text, micros] of READ) {
  test(`${text} is ${micros} µs`, () => {
    assert.equal(parseDatetime(text), micros);
  });
}

for (const text of [
  '',
  'abc',
  'not a date',
  '2024-13-01',
  '2024-00-10',
  '2024-02-30',
  '2023-02-29',
  '2024-3-1',
  '20240301',
  '2024-03-01T25:00',
  '2024-03-01T10:60',
  '2024-03-01T10',
  '2024-03-01T10:00:00.Z',
  '2024-03-01T10:00:00+24:00',
  '2024-03-01Z',
  '2024-03-01T10:00:00Z ',
  '1709287200',
]) {
  test(`${JSON.stringify(text)} is no time`, () => {
    assert.equal(parseDatetime(text), undefined);
  });
}

test('every ISO text of the platform is read to the millisecond', () => {
  fc.assert(
    fc.property(fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }), (date) => {
      assert.equal(parseDatetime(date.toISOString()), date.getTime() * 1000);
    }),
    seeded(1000),
  );
});

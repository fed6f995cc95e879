import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Cron, nextAfter, parseCron } from '../../../actors/backups/cron.js';

function cronOf(text: string): Cron {
  const cron = parseCron(text);
  if (typeof cron === 'string') assert.fail(`${text}: ${cron}`);
  return cron;
}

/** The next moments after a date in UTC, to the minute. */
function nextOf(text: string, after: string, count = 1): string[] {
  const cron = cronOf(text);
  const found: string[] = [];
  let from = Date.parse(`${after}Z`);
  for (let at = 0; at < count; at++) {
    from = nextAfter(cron, from);
    found.push(new Date(from).toISOString().slice(0, 16));
  }
  return found;
}

test('a field is all values, a value, a range, a range with a step, or a list of these', () => {
  const { days, hours, minutes, months, weekdays } = cronOf('*/20 8-18/5 1,15 * 0-6');
  assert.deepEqual(minutes, [0, 20, 40]);
  assert.deepEqual(hours, [8, 13, 18]);
  assert.deepEqual(days, [1, 15]);
  assert.equal(months.length, 12);
  assert.equal(weekdays.length, 7);
  assert.deepEqual(cronOf('5,1-3,2 0 * * *').minutes, [1, 2, 3, 5]);
});

test('months and days have names in either case, and Sunday is 0 and 7', () => {
  assert.deepEqual(cronOf('0 0 * jan,DEC MON-Fri').months, [1, 12]);
  assert.deepEqual(cronOf('0 0 * * MON-Fri').weekdays, [1, 2, 3, 4, 5]);
  assert.deepEqual(cronOf('0 0 * * 7').weekdays, [0]);
  assert.deepEqual(cronOf('0 0 * * 5-7').weekdays, [0, 5, 6]);
  assert.deepEqual(cronOf('0 0 * * sun').weekdays, cronOf('0 0 * * 0').weekdays);
});

test('short forms stand for their expressions', () => {
  const pairs = { '@hourly': '0 * * * *', '@daily': '0 0 * * *', '@weekly': '0 0 * * 0', '@monthly': '0 0 1 * *', '@yearly': '0 0 1 1 *' };
  for (const [short, long] of Object.entries(pairs)) assert.deepEqual(cronOf(short), cronOf(long), short);
  assert.deepEqual(cronOf('@Midnight'), cronOf('@daily'));
  assert.deepEqual(cronOf('@annually'), cronOf('@yearly'));
});

test('the next moment is after the given one, also on the minute itself', () => {
  assert.deepEqual(nextOf('0 2 * * *', '2026-03-01T01:59:59'), ['2026-03-01T02:00']);
  assert.deepEqual(nextOf('0 2 * * *', '2026-03-01T02:00:00'), ['2026-03-02T02:00']);
  assert.deepEqual(nextOf('*/30 * * * *', '2026-12-31T23:15:00', 3), ['2026-12-31T23:30', '2027-01-01T00:00', '2027-01-01T00:30']);
});

test('months end where the calendar ends them, in leap years and around 2100', () => {
  assert.deepEqual(nextOf('0 0 31 * *', '2026-03-31T12:00:00', 2), ['2026-05-31T00:00', '2026-07-31T00:00']);
  assert.deepEqual(nextOf('0 0 29 2 *', '2026-01-01T00:00:00', 2), ['2028-02-29T00:00', '2032-02-29T00:00']);
  assert.deepEqual(nextOf('0 0 29 2 *', '2096-03-01T00:00:00'), ['2104-02-29T00:00']);
});

test('of two fields of days either is enough, and one field alone decides', () => {
  // 1 March 2026 is a Sunday.
  assert.deepEqual(nextOf('0 0 4 * MON', '2026-03-01T00:00:00', 3), ['2026-03-02T00:00', '2026-03-04T00:00', '2026-03-09T00:00']);
  assert.deepEqual(nextOf('0 0 * * MON', '2026-03-01T00:00:00', 2), ['2026-03-02T00:00', '2026-03-09T00:00']);
  assert.deepEqual(nextOf('0 0 4 * *', '2026-03-01T00:00:00', 2), ['2026-03-04T00:00', '2026-04-04T00:00']);
});

test('a date that never comes is refused', () => {
  for (const text of ['0 0 30 2 *', '0 0 31 4,6,9,11 *', '0 0 30,31 feb *']) assert.match(String(parseCron(text)), /never comes/, text);
  assert.equal(typeof parseCron('0 0 30 2 MON'), 'object', 'Mondays in February come');
  assert.equal(typeof parseCron('0 0 31 4,5 *'), 'object', 'one of the months has the day');
});

test('what is no expression is refused with the field and what it may have', () => {
  const refusals: Record<string, RegExp> = {
    '': /^has 0 fields and needs 5/,
    '* * * *': /^has 4 fields/,
    '0 0 * * * *': /^has 6 fields/,
    '60 * * * *': /^minute "60": values are 0 to 59$/,
    '* 24 * * *': /^hour "24"/,
    '* * 0 * *': /^day of the month "0": values are 1 to 31/,
    '* * * 13 *': /^month "13": values are 1 to 12, or names such as JAN/,
    '* * * * 8': /^day of the week "8": values are 0 to 7, or names such as SUN/,
    '* * * * FOO': /names such as SUN/,
    '5-1 * * * *': /ends before it begins/,
    '1-2-3 * * * *': /is no range/,
    '*/0 * * * *': /a step is an integer of 1 or more/,
    '*/x * * * *': /a step is an integer/,
    '5/10 * * * *': /a step needs a range: 5-59\/10/,
    '1,,2 * * * *': /^minute "1,,2"/,
    '-5 * * * *': /^minute "-5"/,
    '1.5 * * * *': /^minute "1.5"/,
    '@often': /^@often is none of @hourly/,
    '61 25 * * *': /^minute "61".*; hour "25"/,
  };
  for (const [text, message] of Object.entries(refusals)) assert.match(String(parseCron(text)), message, JSON.stringify(text));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AuditFilter, isAskedFor, readAuditLine, shownLine } from '../../../ops/tools/audit-lines.js';
import { momentMs, spanMs } from '../../../ops/tools/moments.js';

const ALL: AuditFilter = {
  sinceMs: Number.NEGATIVE_INFINITY,
  untilMs: Number.POSITIVE_INFINITY,
  who: null,
  operation: null,
  collection: null,
  deniedOnly: false,
};
const RECORD = {
  time: '2026-11-25T18:05:00.123Z',
  request_id: 'r',
  who: { kind: 'key', setting: 'service.api_key' },
  from: '10.0.0.1',
  protocol: 'rest',
  operation: 'count_points',
  collection: 'c',
  access: 'allowed',
  status: 200,
  duration_ms: 1,
} as const;
const LOSS = { time: RECORD.time, event: 'records_lost', records: 7 } as const;

test('a record is shown if all that is asked for fits, and a loss whenever its time does', () => {
  const at = Date.parse(RECORD.time);
  const fits: Partial<AuditFilter>[] = [
    {},
    { who: 'api_key' },
    { operation: 'count_points', collection: 'c' },
    { sinceMs: at, untilMs: at },
  ];
  const others: Partial<AuditFilter>[] = [
    { who: 'read_only' },
    { operation: 'count' },
    { collection: 'd' },
    { deniedOnly: true },
    { sinceMs: at + 1 },
    { untilMs: at - 1 },
  ];
  for (const filter of fits) assert.ok(isAskedFor(RECORD, { ...ALL, ...filter }), JSON.stringify(filter));
  for (const filter of others) assert.ok(!isAskedFor(RECORD, { ...ALL, ...filter }), JSON.stringify(filter));
  assert.ok(isAskedFor(LOSS, { ...ALL, who: 'nobody', deniedOnly: true }));
  assert.ok(!isAskedFor(LOSS, { ...ALL, sinceMs: at + 1 }));
});

test('half a line is no record, and names cannot move the cursor of a terminal', () => {
  assert.equal(readAuditLine('{"time":"2026-11-25T18:05:00.123Z","req'), null);
  assert.equal(readAuditLine('7'), null);
  assert.ok(!shownLine({ ...RECORD, collection: 'c\u001b[2J' }).includes('\u001b'));
  assert.match(shownLine(LOSS), /7 records before this one were lost/);
});

test('times are dates of UTC or spans before now', () => {
  const now = Date.UTC(2026, 10, 25, 12);
  assert.deepEqual(['90s', '30m', '8h', '7d'].map(spanMs), [90_000, 1_800_000, 28_800_000, 604_800_000]);
  assert.equal(momentMs('2h', now), Date.UTC(2026, 10, 25, 10));
  assert.equal(momentMs('2026-11-25', now), Date.UTC(2026, 10, 25));
  assert.equal(momentMs('2026-11-25T10:30', now), Date.UTC(2026, 10, 25, 10, 30));
  assert.equal(momentMs('2026-11-25T10:30:00+01:00', now), Date.UTC(2026, 10, 25, 9, 30));
  for (const wrong of ['', 'soon', '8', '8w', '2026', '2026-13-01', '25.11.2026']) assert.equal(momentMs(wrong, now), null, wrong);
});

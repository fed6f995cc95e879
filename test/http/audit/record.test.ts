import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Caller } from '../../../http/access/caller.js';
import { type AuditRecord, lossLine, recordLine } from '../../../http/audit/record.js';

const TIME_MS = Date.UTC(2026, 10, 25, 18, 5, 0, 123);
const CALL = { requestId: 'r-1', from: '10.0.0.1', via: null, protocol: 'rest', operation: 'query_points', collection: 'c' } as const;
const END = { denied: null, status: 200, milliseconds: 1.23456 };
const KEY: Caller = { kind: 'key', setting: 'service.api_key' };

const recordOf = (line: string): AuditRecord => {
  assert.ok(line.endsWith('\n') && !line.slice(0, -1).includes('\n'), line);
  return JSON.parse(line) as AuditRecord;
};

test('a record is one line of JSON that says who, from where, what, and what came of it', () => {
  assert.deepEqual(recordOf(recordLine(TIME_MS, { ...CALL, caller: KEY }, END)), {
    time: '2026-11-25T18:05:00.123Z',
    request_id: 'r-1',
    who: { kind: 'key', setting: 'service.api_key' },
    from: '10.0.0.1',
    protocol: 'rest',
    operation: 'query_points',
    collection: 'c',
    access: 'allowed',
    status: 200,
    duration_ms: 1.235,
  });
  const denied = { denied: 'Write access to collection c is required', status: 403, milliseconds: 0 };
  const record = recordOf(recordLine(TIME_MS, { ...CALL, caller: KEY, via: '10.0.0.9', collection: null }, denied));
  assert.deepEqual([record.access, record.reason, record.via, record.collection], ['denied', denied.denied, '10.0.0.9', null]);
});

test('each kind of caller is told by what is no secret', () => {
  const token = { kind: 'token', access: { kind: 'manage' }, valueExists: null, fingerprint: '00ff' } as const;
  const callers: readonly (readonly [Caller, Record<string, string>])[] = [
    [{ kind: 'anyone' }, { kind: 'anyone' }],
    [
      { kind: 'stranger', reason: 'missing', text: 'Must provide a key' },
      { kind: 'stranger', reason: 'missing' },
    ],
    [KEY, { kind: 'key', setting: 'service.api_key' }],
    [
      { ...token, subject: 'reports' },
      { kind: 'token', subject: 'reports', token: '00ff' },
    ],
    [
      { ...token, subject: null },
      { kind: 'token', token: '00ff' },
    ],
  ];
  for (const [caller, who] of callers) assert.deepEqual(recordOf(recordLine(TIME_MS, { ...CALL, caller }, END)).who, who);
});

test('what a client chooses cannot end a line or forge a field, and is cut when it is long', () => {
  const hostile = 'c","access":"allowed"}\n{"time":"\u2028\\';
  const record = recordOf(
    recordLine(TIME_MS, { ...CALL, caller: KEY, collection: hostile, requestId: hostile }, { ...END, denied: hostile }),
  );
  assert.deepEqual([record.collection, record.request_id, record.reason], [hostile, hostile, hostile]);
  const long = recordOf(recordLine(TIME_MS, { ...CALL, caller: KEY, collection: 'x'.repeat(10_000) }, END));
  assert.equal(long.collection?.length, 257);
});

test('a loss is a line of its own', () => {
  assert.deepEqual(JSON.parse(lossLine(TIME_MS, 7)), { time: '2026-11-25T18:05:00.123Z', event: 'records_lost', records: 7 });
});

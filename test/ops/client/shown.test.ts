import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openConnection } from '../../../ops/client/connection.js';
import { ProgressBar, progressLine } from '../../../ops/client/progress.js';
import { bytesText, cut, listingText, tableText } from '../../../ops/client/tables.js';
import { ToolError } from '../../../ops/client/tool.js';

test('columns are as wide as their widest cell, and numbers stand to the right', () => {
  assert.equal(
    tableText(
      ['name', 'points'],
      [
        ['a', 5],
        ['longer', 1234],
      ],
    ),
    'name    points\na            5\nlonger    1234\n',
  );
  assert.equal(tableText(['name'], []), 'name\n');
});

test('what a node tells cannot steer the terminal', () => {
  assert.equal(tableText(['name'], [['\u001b[2Ja\nb']]), 'name\n?[2Ja\\nb\n');
  assert.equal(listingText({ a: '\u0007', b: { c: [1, 2], none: null }, d: {} }), 'a: ?\nb:\n  c: [1,2]\nd: none\n');
});

test('sizes are shown in steps of a thousand', () => {
  assert.deepEqual([0, 999, 1000, 1_234_567, 999_500_000, 5e12].map(bytesText), ['0 B', '999 B', '1.0 kB', '1.2 MB', '1000 MB', '5.0 TB']);
  assert.equal(cut('abcdef', 4), 'abc…');
});

test('a bar shows the share, the rate since this start, and what is left; where nobody looks there is none', () => {
  const line = progressLine({ what: 'c', unit: 'points', total: 1000, done: 500, begun: 300, seconds: 2 });
  assert.equal(line, 'c ████████████░░░░░░░░░░░░ 50 % (500 of 1,000 points), 100 points/s, 5 s left');
  const written: string[] = [];
  const write = (text: string): void => void written.push(text);
  const silent = new ProgressBar('c', 'points', 10, 0, { write }, () => 0);
  silent.show(5);
  silent.end(10);
  assert.equal(written.length, 0);
  let nowMs = 0;
  const seen = new ProgressBar('c', 'points', 10, 0, { isTTY: true, columns: 40, write }, () => nowMs);
  seen.show(1);
  seen.show(2);
  nowMs = 1000;
  seen.end(10);
  assert.equal(written.length, 3, 'it is drawn at most ten times a second');
  assert.ok(written.every((text) => text.length <= 44));
});

test('an address, a key or a certificate that cannot be used is refused before anything is sent', () => {
  const wrong = [
    { url: 'ftp://a' },
    { url: 'http://user:secret@a' },
    { 'api-key-env': 'A', 'api-key-file': 'b' },
    { 'api-key-env': 'NOT_SET' },
    { 'api-key-file': '/nowhere/at/all' },
    { url: 'https://a', 'client-cert': 'a' },
    { timeout: '0' },
  ];
  for (const values of wrong) {
    assert.throws(
      () => openConnection(values, {}),
      (error: unknown) => error instanceof ToolError && error.exitCode === 2,
      JSON.stringify(values),
    );
  }
  const { url } = openConnection({}, { TROUPE_URL: 'localhost:7000/prefix/', TROUPE_API_KEY: 'secret' });
  assert.equal(url, 'http://localhost:7000/prefix');
});

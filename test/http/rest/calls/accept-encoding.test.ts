import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chosenCoding } from '../../../../http/rest/calls/accept-encoding.js';

test('the coding that the client likes best is chosen, of equals the one that is offered first, and none that it excludes', () => {
  const chosen: [string, string | null][] = [
    ['gzip', 'gzip'],
    ['gzip, deflate, br, zstd', 'zstd'],
    ['gzip, deflate, br', 'br'],
    ['GZIP;Q=1', 'gzip'],
    ['x-gzip', 'gzip'],
    ['br;q=0.5, gzip;q=0.8', 'gzip'],
    ['zstd;q=0, *', 'br'],
    ['*;q=0.1', 'zstd'],
    ['*;q=0', null],
    ['identity, gzip;q=0.5', null],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['identity;q=0', null],
    ['identity;q=0, deflate', null],
    ['', null],
    ['deflate, compress', null],
    ['gzip;q=2', null],
    ['gzip;q=0.0001', null],
    ['gzip;level=3', null],
    ['gzip br', null],
    [', ,gzip\t; q=0.3,,', 'gzip'],
    [`${'x,'.repeat(5000)}br`, 'br'],
  ];
  for (const [accepted, coding] of chosen)
    assert.equal(chosenCoding(accepted, ['zstd', 'br', 'gzip']), coding, JSON.stringify(accepted.slice(0, 50)));
  assert.equal(chosenCoding('zstd, gzip;q=0.5', ['br', 'gzip']), 'gzip', 'a runtime without zstd');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEAD_BYTES_MAX, readHead } from '../../../../http/rest/fast/head.js';

function headOf(lines: readonly string[], rest = '') {
  return readHead(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${rest}`, 'latin1'));
}

const SEARCH = 'POST /collections/c/points/search?timeout=5 HTTP/1.1';

test('a plain head says method, path, query, length of the body and its own length', () => {
  const head = headOf([SEARCH, 'Host: x', 'content-type: application/json', 'Content-Length:  12 '], '{"limit":10}');
  assert.equal(head, null, 'spaces after a value are left to the HTTP server of Node');
  const lines = [SEARCH, 'Host: x', 'content-type: application/json', 'Content-Length:  12'];
  assert.deepEqual(headOf(lines, '{"limit":10}'), {
    method: 'POST',
    url: '/collections/c/points/search?timeout=5',
    path: '/collections/c/points/search',
    query: 'timeout=5',
    bodyBytes: 12,
    credential: null,
    isLast: false,
    accepted: undefined,
    bytes: 118,
    text: lines.join('\r\n'),
  });
  assert.equal(headOf(['GET / HTTP/1.1', 'host: x', 'Accept-Encoding: gzip, br'])?.accepted, 'gzip, br');
  assert.equal((headOf(['GET / HTTP/1.1', 'host: x', 'Connection: Close']) as { isLast: boolean }).isLast, true);
});

test('a head that has not come whole, or is longer than the limit, is left to the HTTP server of Node', () => {
  const whole = Buffer.from(`${SEARCH}\r\nhost: x\r\n\r\n`);
  for (let length = 0; length < whole.length; length++) assert.equal(readHead(whole.subarray(0, length)), null);
  assert.notEqual(readHead(whole), null);
  assert.equal(headOf([SEARCH, 'host: x', `long: ${'a'.repeat(HEAD_BYTES_MAX)}`]), null);
});

test('all that is unusual about a head is left to the HTTP server of Node', () => {
  const host = 'host: x';
  const odd: readonly (readonly string[])[] = [
    [SEARCH],
    [SEARCH, host, host],
    [SEARCH, host, 'api-key: a', 'Api-Key: a'],
    [SEARCH, host, 'authorization: Bearer a', 'authorization: Bearer b'],
    ['GET /collections HTTP/1.0', host],
    ['get /collections HTTP/1.1', host],
    ['HEAD /collections HTTP/1.1', host],
    ['GET  /collections HTTP/1.1', host],
    ['GET http://x/collections HTTP/1.1', host],
    ['GET /collections/ HTTP/1.1', host],
    ['GET //collections HTTP/1.1', host],
    ['GET /collections/%63 HTTP/1.1', host],
    ['GET /collections#x HTTP/1.1', host],
    ['GET /collections;x HTTP/1.1', host],
    ['', 'GET /collections HTTP/1.1', host],
    [SEARCH, host, 'content-length: 1', 'content-length: 1'],
    [SEARCH, host, 'content-length: +1'],
    [SEARCH, host, 'content-length: 1, 1'],
    [SEARCH, host, 'content-length: 0x1'],
    [SEARCH, host, 'content-length:'],
    [SEARCH, host, 'content-length: 9999999999999999'],
    [SEARCH, host, 'transfer-encoding: chunked'],
    [SEARCH, host, 'Transfer-Encoding : chunked'],
    [SEARCH, host, 'expect: 100-continue'],
    [SEARCH, host, 'upgrade: h2c'],
    [SEARCH, host, 'connection: keep-alive, upgrade'],
    [SEARCH, host, 'connection: close', 'connection: close'],
    [SEARCH, host, 'origin: http://example.com'],
    [SEARCH, host, 'upgrade-insecure-requests: 1'],
    [SEARCH, host, 'folded: a', ' b'],
    [SEARCH, host, 'content-encoding: gzip'],
    [SEARCH, host, 'accept-encoding: gzip', 'accept-encoding: br'],
    [SEARCH, host, 'name'],
    [SEARCH, host, ': value'],
    [SEARCH, host, 'name: a\nb: c'],
    [SEARCH, host, 'name: a\rb'],
    [SEARCH, host, 'name: a\0b'],
    [SEARCH, host, 'name: \u00e4'],
    ['GET /collections HTTP/1.1', host, 'content-length: 1'],
  ];
  for (const lines of odd) assert.equal(headOf(lines), null, JSON.stringify(lines));
});

test('fields that are known by heart tell the length of each body, and those that differ anywhere are read anew', () => {
  const post = (...fields: string[]) => headOf([SEARCH, 'host: x', ...fields]);
  for (const length of ['0', '7', '12', '007', '999999999999999']) {
    assert.equal(post('api-key: a', `content-length: ${length}`, 'accept: */*')?.bodyBytes, Number(length));
    assert.equal(post('api-key: a', `content-length: ${length}`)?.bodyBytes, Number(length));
  }
  for (const odd of ['', '+1', '1 ', ' 1x', '1,1', '0x1', '9999999999999999', '1\r\ncontent-length: 1', '1\r\nexpect: 100-continue'])
    assert.equal(post('api-key: a', `content-length: ${odd}`, 'accept: */*'), null, odd);
  assert.equal(post('api-key: b', 'content-length: 7', 'accept: */*')?.credential, 'b');
  assert.equal(post('api-key: a', 'content-length: 7', 'connection: close')?.isLast, true);
  assert.equal(post('api-key: a', 'content-length: 7', 'accept: */*')?.isLast, false);
  assert.equal(post('api-key: a', 'accept: */*')?.bodyBytes, 0);
  assert.equal(headOf(['GET / HTTP/1.1', 'host: x', 'api-key: a', 'content-length: 7', 'accept: */*']), null);
  // More clients than are known at once, in turns.
  for (let turn = 0; turn < 3; turn++)
    for (let client = 0; client < 20; client++)
      assert.equal(post(`api-key: ${client}`, `content-length: ${turn}${client}`)?.credential, String(client));
});

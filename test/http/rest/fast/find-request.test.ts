import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openKnownCallers } from '../../../../http/access/known-callers.js';
import { requestFinder } from '../../../../http/rest/fast/find-request.js';
import { type RequestHead, readHead } from '../../../../http/rest/fast/head.js';
import { ROUTES } from '../../../../http/routes.js';

function head(line: string, ...fields: readonly string[]): RequestHead {
  return readHead(Buffer.from(`${[`${line} HTTP/1.1`, 'host: here', ...fields].join('\r\n')}\r\n\r\n`)) as RequestHead;
}

test('a line that came before is answered for the caller and the body that come now', async () => {
  const callers = await openKnownCallers({ keys: new Map([['service.api_key', 'open']]), tokens: false }, Date.now);
  const find = requestFinder(ROUTES, callers);
  const line = 'POST /collections/c/points/count';
  const known = find(head(line, 'api-key: open', 'content-length: 20000'));
  assert.equal(known?.caller.kind, 'key');
  assert.equal(find(head(line, 'content-length: 20'))?.caller.kind, 'stranger');
  assert.equal(find(head(line, 'content-length: 20000')), null, 'a large body of a stranger');
  const refused = `${line}?timeout=x`;
  assert.notEqual(find(head(refused, 'api-key: open')), null);
  assert.equal(find(head(refused, 'api-key: open', 'content-length: 2')), null, 'its head is refused, and it has a body');
});

test('of many lines each finds its own row and names, in whatever order they come again', () => {
  const find = requestFinder(ROUTES, null);
  const rows = ROUTES.filter(({ kind }) => kind !== 'upload' && kind !== 'download');
  for (const name of ['one', 'two', 'one', 'two', 'one']) {
    for (const { method, path } of [...rows, ...rows.slice(0, 5).reverse()]) {
      const found = find(head(`${method} ${path.replaceAll(/\{\w+\}/g, name)}?wait=${name === 'one'}`));
      assert.equal(ROUTES[found?.at ?? -1]?.path, path);
      for (const value of Object.values(found?.path ?? {})) assert.equal(value, name);
      assert.equal(found?.query.wait, String(name === 'one'));
    }
  }
});

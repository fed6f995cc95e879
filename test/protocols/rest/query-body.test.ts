import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TroupeError } from '../../../protocols/errors.js';
import { decodeQuery, decodeQueryBatch, decodeSearch } from '../../../protocols/rest/queries.js';
import { plainBody, type RequestValue, scannedBody } from '../../../protocols/rest/request-value.js';
import { seeded } from '../../query/property.js';
import { queryBody, searchBody } from './query-arbitrary.js';

/** What decoding gives or refuses. Anything but a catalogue error is a bug. */
function outcome(decode: (body: RequestValue) => unknown, body: RequestValue): unknown {
  try {
    return { value: decode(body) };
  } catch (error) {
    assert.ok(error instanceof TroupeError, String(error));
    return { code: error.code };
  }
}

test('a query decodes to the same whether its vectors are read from the bytes or by the parser', () => {
  const cases = fc.oneof(
    queryBody.map((body): [(body: RequestValue) => unknown, object] => [decodeQuery, body]),
    fc.array(queryBody, { maxLength: 2 }).map((searches): [(body: RequestValue) => unknown, object] => [decodeQueryBatch, { searches }]),
    searchBody.map((body): [(body: RequestValue) => unknown, object] => [decodeSearch, body]),
  );
  fc.assert(
    fc.property(cases, ([decode, body]) => {
      const bytes = new TextEncoder().encode(JSON.stringify(body));
      assert.deepEqual(outcome(decode, scannedBody(bytes)), outcome(decode, plainBody(bytes)));
    }),
    seeded(5000),
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { JsonValue } from '../../../protocols/model/payload.js';
import { decodeCollectionClusterUpdate } from '../../../protocols/rest/cluster.js';

test('a body without an operation that is known is told which ones there are', () => {
  const bodies: readonly JsonValue[] = [{}, { moveShard: {} }];
  for (const body of bodies) {
    assert.throws(
      () => decodeCollectionClusterUpdate(body),
      (error) =>
        error instanceof TroupeError &&
        error.code === 'malformedBody' &&
        /expected one of `move_shard`, `replicate_shard`, /.test(error.detail),
      JSON.stringify(body),
    );
  }
});

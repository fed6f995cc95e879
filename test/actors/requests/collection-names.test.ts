import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeView } from '../../../actors/context/view.js';
import { Names } from '../../../actors/requests/collection-names.js';
import { TroupeError } from '../../../protocols/errors.js';

test('a node that does not know yet what its cluster has says so, not that a collection does not exist', () => {
  const names = new Names(
    new NodeView(),
    () => null,
    () => {
      throw new TroupeError('unavailable', 'the node is starting');
    },
  );
  assert.throws(() => names.find('cities'), { code: 'unavailable' });
});

test('a node of its own knows what it has', () => {
  const names = new Names(new NodeView(), () => null);
  assert.throws(() => names.find('cities'), { code: 'notFound' });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ahead } from '../../../actors/shard-log/ahead.js';
import { TroupeError } from '../../../protocols/errors.js';

/** A store of one shard; full: writes fail. */
function storeOf(noted: boolean) {
  const store = {
    noted,
    full: false,
    isAhead: () => store.noted,
    noteAhead: async (_folder: string, _shardId: number, isAhead: boolean) => {
      if (store.full) throw new TroupeError('storage', 'the disk is full');
      store.noted = isAhead;
    },
  };
  return store;
}

test('a shard begins as its file says', () => {
  for (const noted of [false, true]) assert.equal(new Ahead(storeOf(noted), 'a', 0).may, noted);
});

test('what cannot be noted is not begun', async () => {
  const store = storeOf(false);
  const ahead = new Ahead(store, 'a', 0);
  store.full = true;
  await assert.rejects(ahead.begin(), { code: 'storage' });
  assert.equal(ahead.may, false);
  store.full = false;
  await ahead.begin();
  assert.deepEqual([ahead.may, store.noted], [true, true]);
});

test('it ends only where others have everything when that is written, and is tried again', async () => {
  const store = storeOf(true);
  const ahead = new Ahead(store, 'a', 0);
  let held = false;
  const ended = async () => {
    ahead.end(() => held);
    await new Promise((resolve) => setImmediate(resolve));
  };
  await ended();
  assert.equal(store.noted, true);
  held = true;
  store.full = true;
  await ended();
  assert.deepEqual([ahead.may, store.noted], [true, true]);
  store.full = false;
  await ended();
  assert.deepEqual([ahead.may, store.noted], [false, false]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FolderMap } from '../../../actors/node/folder-map.js';
import { activeNode, type CollectionPhase, Phases, startingNode, withoutPhase, withPhase } from '../../../actors/node/state.js';

const OPENING: CollectionPhase = { kind: 'Opening' };
const ACTIVE: CollectionPhase = { kind: 'Active' };

test('a map by folder answers as a Map does after each of many changes, and the maps before a change stay as they were', () => {
  const folders = Array.from({ length: 700 }, (_, at) => `folder-${(at * 7919) % 700}`);
  const expected = new Map<string, number>(folders.slice(0, 300).map((folder, at) => [folder, at]));
  let map = FolderMap.of(expected);
  const first = map;
  for (const [at, folder] of folders.entries()) {
    const isGoing = at % 3 === 0;
    map = isGoing ? map.without(folder) : map.with(folder, -at);
    if (isGoing) expected.delete(folder);
    else expected.set(folder, -at);
    assert.equal(map.size, expected.size);
    assert.equal(map.get(folder), expected.get(folder));
    assert.equal(map.has(folder), expected.has(folder));
  }
  assert.deepEqual(new Map(map), expected);
  assert.deepEqual(new Set(map.keys()), new Set(expected.keys()));
  assert.deepEqual(new Map(first), new Map(folders.slice(0, 300).map((folder, at) => [folder, at])));
  assert.equal(map.without('not there'), map);
});

test('phases know how many collections are being opened, whatever they become', () => {
  const starting = startingNode(
    [
      ['a', OPENING],
      ['b', OPENING],
      ['c', ACTIVE],
    ],
    [],
  );
  assert.equal(starting.collections.opening, 2);
  assert.equal(withPhase(starting, 'a', ACTIVE).collections.opening, 1);
  assert.equal(withPhase(starting, 'c', OPENING).collections.opening, 3);
  assert.equal(withPhase(starting, 'a', OPENING).collections.opening, 2);
  assert.equal(withoutPhase(starting, 'b').collections.opening, 1);
  assert.equal(withoutPhase(starting, 'not there').collections.opening, 2);
  assert.equal(activeNode(Phases.of([['a', ACTIVE]])).collections.opening, 0);
});

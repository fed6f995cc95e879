/** Which reader has which set of segments, with readers that only listen. */

import assert from 'node:assert/strict';
import test from 'node:test';
import { HandedSets } from '../../../storage/pool/handed-sets.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import type { Attach, ToReader } from '../../../storage/threads/messages.js';

const KEY = 'books/0';

test('a reader that starts later gets the newest sets, and hears of replicas that are asleep', () => {
  const { readers, sets } = withReaders(0);
  sets.add(KEY);
  sets.attach(setOf(1));
  sets.attach(setOf(2));
  sets.retireBefore(KEY, 2);
  sets.addSleeping({ key: 'films/0', shards: 1 });
  readers.start(1);
  sets.begin(1);
  assert.deepEqual(readers.heard(1), ['attach 2', 'asleep films/0']);
  sets.stop();
});

test('a set is retired when the last reader has dropped it or is lost, and not before', () => {
  const { readers, retired, sets } = withReaders(0, 1, 2);
  sets.add(KEY);
  sets.attach(setOf(1));
  sets.attach(setOf(2));
  sets.retireBefore(KEY, 2);
  sets.noteRetired(0, KEY, 2);
  sets.noteRetired(1, KEY, 2);
  assert.deepEqual(retired, []);
  readers.end(2);
  sets.lose(2);
  assert.deepEqual(retired, ['books/0 before 2']);
});

test('what a retirement frees is told: hardly anything of memories that are emptied, and nobody knows how much of an earlier opening', () => {
  const { freed, readers, sets } = withReaders(0);
  sets.add(KEY);
  sets.attach(setOf(1, 7));
  sets.attach(setOf(2, 8));
  sets.retireBefore(KEY, 2);
  sets.noteRetired(0, KEY, 2);
  sets.retireBefore(KEY, 3);
  sets.noteRetired(0, KEY, 3);
  sets.attach({ ...setOf(3), opening: 2 });
  sets.attach({ ...setOf(4), opening: 3 });
  sets.retireBefore(KEY, 4);
  sets.noteRetired(0, KEY, 4);
  const [first, second, third, ...more] = freed;
  assert.deepEqual([first, second, third, more], [65_536, 65_536, Number.POSITIVE_INFINITY, []]);
  assert.deepEqual(readers.heard(0).slice(2, 4), ['retire 65536', 'retire 65536']);
});

test('without readers a set is retired at once', () => {
  const { retired, sets } = withReaders();
  sets.add(KEY);
  sets.attach(setOf(1));
  sets.retireBefore(KEY, 2);
  assert.deepEqual(retired, ['books/0 before 2']);
});

test('a reader that starts while a replica is detached gets no set of it: its memory may be used for something else', async () => {
  const { readers, sets } = withReaders(0);
  sets.add(KEY);
  sets.attach(setOf(1));
  const detached = sets.detach(KEY, false, { key: KEY, shards: 1 });
  assert.equal(sets.isDetaching(KEY), true);
  readers.start(1);
  sets.begin(1);
  assert.deepEqual(readers.heard(1), ['asleep books/0']);
  sets.noteDetached(0, KEY);
  await detached;
  assert.equal(sets.isDetaching(KEY), false);
});

test('readers forget a replica before they hear of another one with its name', () => {
  const { readers, sets } = withReaders(0);
  sets.addSleeping({ key: KEY, shards: 1 });
  sets.remove(KEY);
  sets.forget(KEY);
  sets.add(KEY);
  sets.attach(setOf(1));
  assert.deepEqual(readers.heard(0), ['forget books/0', 'attach 1']);
});

/** Readers with these numbers are there from the start. */
function withReaders(...up: readonly number[]) {
  const indices = new Set(up);
  const messages = new Map<number, string[]>();
  const retired: string[] = [];
  const freed: number[] = [];
  const post = (index: number, message: ToReader): void => {
    messages.set(index, [...(messages.get(index) ?? []), said(message)]);
  };
  const postAll = (message: ToReader): void => {
    for (const index of indices) post(index, message);
  };
  const sets = new HandedSets(
    { indicesUp: () => new Set(indices), post, postAll },
    {
      retired: (key, generation) => retired.push(`${key} before ${generation}`),
      collectSoon: (bytes = 0) => freed.push(bytes),
      empties: true,
    },
  );
  const readers = {
    start: (index: number) => indices.add(index),
    end: (index: number) => indices.delete(index),
    heard: (index: number) => messages.get(index) ?? [],
  };
  return { sets, readers, retired, freed };
}

function said(message: ToReader): string {
  if (message.kind === 'attach') return `attach ${message.set.generation}`;
  if (message.kind === 'asleep') return `asleep ${message.replicas.map(({ key }) => key).join()}`;
  if (message.kind === 'retire') return message.freed === 0 ? 'retire' : `retire ${message.freed}`;
  return message.kind === 'forget' ? `forget ${message.keys.join()}` : message.kind;
}

/** segments: numbers of segments of 1 MB. */
function setOf(generation: number, ...segments: readonly number[]): Attach {
  const handles = segments.map((id) => ({ id, layout: { bytes: 1 << 20 }, payloadBytes: null, fieldIndexes: [], sparseIndexes: [] }));
  const spec = { key: KEY } as Attach['spec'];
  return {
    kind: 'attach',
    place: 0,
    spec,
    opening: 1,
    openCommit: 0,
    commits: new Int32Array(1),
    fields: new Map(),
    set: { generation, segments: handles as unknown as SegmentHandle[] },
  };
}

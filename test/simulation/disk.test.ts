import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ConsensusWrite, type Entry, NO_WRITE } from '../../protocols/model/consensus.js';
import { afterWrite, VirtualDisk } from './disk.js';
import { Stream } from './random.js';
import { Life, World } from './world.js';

function entries(term: number, from: number, to: number): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, at) => ({ index: from + at, term, payload: { kind: 'empty' } }));
}

function write(change: Partial<ConsensusWrite>): ConsensusWrite {
  return { ...NO_WRITE, ...change };
}

function open(seed = 1) {
  const world = new World();
  const life = new Life('node-1');
  const disk = new VirtualDisk('node-1', world, new Stream(seed, 'disk'), () => {});
  disk.attach(life);
  return { world, life, disk, store: disk.openConsensus() };
}

function terms(list: readonly Entry[]): string {
  return list.map(({ index, term }) => `${index}/${term}`).join(' ');
}

test('entries take the place of those from their first index on', () => {
  const stored = afterWrite(afterWrite(open().disk.consensus, write({ entries: entries(1, 1, 4) })), write({ entries: entries(2, 3, 3) }));
  assert.equal(terms(stored.entries), '1/1 2/1 3/2');
  assert.equal(
    terms(afterWrite(stored, write({ firstIndex: 3, snapshot: { index: 2, term: 1, membership: [], data: new Uint8Array() } })).entries),
    '3/2',
  );
});

test('a gap in the log and a second vote in a term are found when they are written', () => {
  const stored = afterWrite(open().disk.consensus, write({ hardState: { term: 2, votedFor: 7, commit: 0 } }));
  assert.throws(() => afterWrite(stored, write({ entries: entries(1, 2, 2) })), /begins at 2/);
  assert.throws(() => afterWrite(stored, write({ hardState: { term: 2, votedFor: 8, commit: 0 } })), /a second vote in term 2/);
});

test('a write is there when it has been answered, and may be there or not when a crash came before', async () => {
  const left = new Set<string>();
  for (let seed = 1; seed <= 40; seed++) {
    const { world, disk, store } = open(seed);
    let answered = false;
    store.write(write({ entries: entries(1, 1, 1) })).then(() => {
      answered = true;
      store.write(write({ entries: entries(1, 2, 2) }));
    });
    while (!answered) await world.run(1);
    disk.crash();
    await world.run(100);
    left.add(terms(disk.consensus.entries));
  }
  assert.deepEqual([...left].sort(), ['1/1', '1/1 2/1']);
});

test('after a write that did not fit, nothing is written until the log is loaded again', async () => {
  const { world, disk, store } = open();
  const heard: string[] = [];
  const tell = (name: string, done: Promise<unknown>) =>
    done.then(
      () => heard.push(name),
      (error: Error) => heard.push(`${name}: ${error.message}`),
    );
  disk.settings.full = true;
  tell('first', store.write(write({ entries: entries(1, 1, 1) })));
  store.write(write({ entries: entries(1, 2, 2) })).catch((error: Error) => heard.push(error.message));
  while (heard.length === 0) await world.run(0.1);
  disk.settings.full = false;
  tell('second', store.write(write({ entries: entries(1, 1, 1) })));
  await world.run(50);
  assert.equal(terms(disk.consensus.entries), '');
  tell('load', store.load());
  await world.run(50);
  tell('third', store.write(write({ entries: entries(1, 1, 1) })));
  await world.run(50);
  assert.equal(terms(disk.consensus.entries), '1/1');
  const full = 'Storage error: the disk is full (consensus)';
  assert.deepEqual(heard, [`first: ${full}`, 'Storage error: an earlier write failed', `second: ${full}`, 'load', 'third']);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LongWork, LongWorks } from '../../../actors/runtime/long-works.js';

/** An event loop whose clock goes on by a millisecond in each step of a work. */
class FakeLoop {
  readonly waiting: (() => void)[] = [];
  nowMs = 0;
  /** Names of the works, a list for each turn. */
  readonly turns: string[][] = [];
  readonly works = new LongWorks({ monotonicMs: () => this.nowMs, later: (run) => void this.waiting.push(run) });

  *work(name: string, steps: number, result = name): LongWork<string> {
    for (let step = 0; step < steps; step++) {
      this.turns.at(-1)?.push(name);
      this.nowMs += 1;
      yield;
    }
    return result;
  }

  /** Until nothing waits. */
  async run(): Promise<void> {
    for (;;) {
      const run = this.waiting.shift();
      if (run === undefined) return;
      this.turns.push([]);
      run();
      await Promise.resolve();
    }
  }
}

test('a work begins in a later turn, and a turn ends after 3 ms (Work-W2)', async () => {
  const loop = new FakeLoop();
  const done = loop.works.run(loop.work('a', 8));
  assert.deepEqual(loop.turns, []);
  await loop.run();
  assert.deepEqual(
    loop.turns.map(({ length }) => length),
    [3, 3, 2],
  );
  assert.equal(await done, 'a');
});

test('between two looks of the event loop one work has its turn, however many there are (Work-W1)', async () => {
  const loop = new FakeLoop();
  const done = Promise.all([loop.works.run(loop.work('a', 6)), loop.works.run(loop.work('b', 4)), loop.works.run(loop.work('c', 1))]);
  assert.equal(loop.waiting.length, 1);
  await loop.run();
  assert.deepEqual(
    loop.turns.filter(({ length }) => length > 0).map((names) => names.join('')),
    ['aaa', 'bbb', 'c', 'aaa', 'b'],
  );
  assert.deepEqual(await done, ['a', 'b', 'c']);
});

test('a work that fails rejects and stops no other', async () => {
  const loop = new FakeLoop();
  const failing = loop.works.run(
    (function* (): LongWork {
      yield;
      throw new Error('no');
    })(),
  );
  const other = loop.works.run(loop.work('b', 9));
  failing.catch(() => {});
  await loop.run();
  await assert.rejects(failing, /no/);
  assert.equal(await other, 'b');
  const later = loop.works.run(loop.work('c', 1));
  await loop.run();
  assert.equal(await later, 'c');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LongWork, LongWorks } from '../../../actors/runtime/long-works.js';
import { Reports } from '../../../http/context/reports.js';
import type { TextBytes } from '../../../http/context/text-bytes.js';

/** Reports over an event loop that goes on when it is told; each step takes a whole turn. */
class Desk {
  readonly waiting: (() => void)[] = [];
  nowMs = 0;
  begun: string[] = [];
  readonly reports = new Reports(new LongWorks({ monotonicMs: () => (this.nowMs += 10), later: (run) => void this.waiting.push(run) }));

  ask(key: string | null, text = `${key}`, steps = 3): Promise<string> {
    const { begun } = this;
    const write = function* (out: TextBytes): LongWork {
      begun.push(text);
      for (let step = 0; step < steps; step++) yield;
      out.write(text);
    };
    return this.reports.text(key, write).then((chunks) => Buffer.concat(chunks).toString());
  }

  async turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) {
      // What waits for what was before, and for the result of the turn.
      await new Promise(setImmediate);
      this.waiting.shift()?.();
      await new Promise(setImmediate);
    }
  }
}

test('one that waits is made once for all that ask meanwhile; one that is under way is shared with nobody (Report-P1)', async () => {
  const desk = new Desk();
  const first = [desk.ask('a', 'first'), desk.ask('a', 'never begun')];
  await desk.turns(2);
  // Asked after the first has begun: it may have passed what they want to see.
  const second = [desk.ask('a', 'second'), desk.ask('a', 'never begun'), desk.ask('a', 'never begun')];
  await desk.turns(1);
  assert.deepEqual(desk.begun, ['first'], 'the next begins when the one before has ended');
  await desk.turns(20);
  assert.deepEqual(await Promise.all(first), ['first', 'first']);
  assert.deepEqual(await Promise.all(second), ['second', 'second', 'second']);
  assert.deepEqual(desk.begun, ['first', 'second']);
  const third = desk.ask('a', 'third');
  await desk.turns(20);
  assert.equal(await third, 'third');
});

test('reports of different keys, and those without one, are made beside each other', async () => {
  const desk = new Desk();
  const all = [desk.ask('a'), desk.ask('b'), desk.ask(null, 'own'), desk.ask(null, 'own')];
  await desk.turns(4);
  assert.deepEqual(desk.begun.toSorted(), ['a', 'b', 'own', 'own']);
  await desk.turns(30);
  assert.deepEqual(await Promise.all(all), ['a', 'b', 'own', 'own']);
});

test('a report that fails fails for those that share it, and the next is made', async () => {
  const desk = new Desk();
  const failing = () =>
    desk.reports.text('a', function* (): LongWork {
      yield;
      throw new Error('no');
    });
  const failed = Promise.allSettled([failing(), failing()]);
  await desk.turns(1);
  const next = desk.ask('a', 'next');
  await desk.turns(20);
  assert.deepEqual(
    (await failed).map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.equal(await next, 'next');
});

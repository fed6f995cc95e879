import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryRoom } from '../../../actors/context/memory-room.js';
import { BuildBudget } from '../../../actors/optimizer/budget.js';
import { buildThreadsMax } from '../../../actors/optimizer/decide.js';

function asking(budget: BuildBudget) {
  const grants: string[] = [];
  const ask = (name: string, threads: number, lane: 'segment' | 'fieldIndex' = 'segment') =>
    budget.request({ lane, threads, bytes: 0 }, { granted: (granted) => void grants.push(`${name} ${granted}`), waits: () => {} });
  return { grants, ask };
}

test('threads of all builds together stay within the budget', () => {
  const budget = new BuildBudget(4);
  const { grants, ask } = asking(budget);
  ask('a', 3);
  ask('b', 3);
  ask('c', 1);
  assert.deepEqual(grants, ['a 3', 'b 1']);
  assert.deepEqual(budget.usage(), { threads: 4, threadsMax: 4, waiting: 1 });
});

test('a released build lets the next one go, in the order of asking', () => {
  const { grants, ask } = asking(new BuildBudget(2));
  const first = ask('a', 8);
  ask('b', 1);
  ask('c', 1);
  first.release();
  assert.deepEqual(grants, ['a 2', 'b 1', 'c 1']);
});

test('a request that is withdrawn gets nothing, and releasing twice frees once', () => {
  const budget = new BuildBudget(1);
  const { grants, ask } = asking(budget);
  const first = ask('a', 1);
  ask('b', 1).release();
  first.release();
  first.release();
  ask('c', 1);
  assert.deepEqual(grants, ['a 1', 'c 1']);
  assert.equal(budget.usage().threads, 1);
});

test('a field index waits for another one only', () => {
  const { grants, ask } = asking(new BuildBudget(1));
  ask('graph', 1);
  const index = ask('color', 1, 'fieldIndex');
  ask('size', 1, 'fieldIndex');
  assert.deepEqual(grants, ['graph 1', 'color 1']);
  index.release();
  assert.deepEqual(grants, ['graph 1', 'color 1', 'size 1']);
});

test('the setting gives threads, 0 as many as CPUs, a negative number leaves as many free', () => {
  const budgets = [0, 3, -2, -9].map((setting) => buildThreadsMax(setting, 8, true));
  assert.deepEqual(budgets, [8, 3, 6, 1]);
});

test('builders that cannot leave the CPUs to searches get half of them by themselves', () => {
  const budgets = [8, 1].map((cpus) => buildThreadsMax(0, cpus, false));
  assert.deepEqual(budgets, [4, 1]);
});

test('a build for which there is no memory waits, says why once, and lets smaller ones go first', () => {
  let used = 70;
  let look = (): void => {};
  const room = new MemoryRoom({ budgetBytes: 100, usedBytes: () => used, noteHeld: () => {} });
  const budget = new BuildBudget(2, room, (_, run) => {
    look = run;
  });
  const told: string[] = [];
  const ask = (name: string, bytes: number) =>
    budget.request(
      { lane: 'segment', threads: 1, bytes },
      { granted: () => void told.push(`${name} begins`), waits: () => void told.push(`${name} waits`) },
    );
  ask('large', 50);
  const small = ask('small', 20);
  assert.deepEqual(told, ['large waits', 'small begins']);
  small.release();
  look();
  assert.deepEqual(told, ['large waits', 'small begins']);
  used = 30;
  look();
  assert.deepEqual(told, ['large waits', 'small begins', 'large begins']);
});

test('a build that waits hears what is left once no other runs', () => {
  const room = new MemoryRoom({ budgetBytes: 100, usedBytes: () => 60, noteHeld: () => {} });
  const budget = new BuildBudget(2, room);
  const told: (number | null)[] = [];
  const ask = (bytes: number) =>
    budget.request({ lane: 'segment', threads: 1, bytes }, { granted: () => {}, waits: (_, leftBytes) => void told.push(leftBytes) });
  const first = ask(30);
  ask(50);
  assert.deepEqual(told, [null]);
  first.release();
  assert.deepEqual(told, [null, 40]);
});

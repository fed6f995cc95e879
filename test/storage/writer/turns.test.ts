import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turns } from '../../../storage/writer/turns.js';

/** Rounds of an event loop: what is asked for within one comes in the next. arrives: what is asked for when messages are taken for so-and-so many-th time. */
function loop(arrives: (turns: Turns, round: number) => void) {
  let coming: (() => void)[] = [];
  let taken = 0;
  const turns: Turns = new Turns(
    (run) => coming.push(run),
    () => arrives(turns, ++taken),
  );
  const round = (): void => {
    const now = coming;
    coming = [];
    for (const run of now) run();
  };
  return { turns, round };
}

test('whoever comes while a long work has or awaits its turn is served before its next portion', () => {
  const order: string[] = [];
  const { round, turns } = loop((asked, taken) => {
    if (taken === 1) asked.soon(() => order.push('came with it'));
  });
  turns.between(() => order.push('portion'));
  turns.soon(() => order.push('came before it'));
  round();
  round();
  assert.deepEqual(order, ['came before it', 'came with it', 'portion']);
});

test('a long work has a turn after each one of others, however many come', () => {
  const order: string[] = [];
  const { round, turns } = loop(() => {});
  const other = (): void => {
    order.push('other');
    turns.soon(other);
  };
  const portion = (): void => {
    order.push('portion');
    turns.between(portion);
  };
  turns.soon(other);
  turns.between(portion);
  for (let at = 0; at < 60; at++) round();
  const portions = order.filter((each) => each === 'portion').length;
  assert.ok(portions >= 20, `${portions} of ${order.length}`);
});

test('a long work that nobody else comes beside goes on in each round', () => {
  let portions = 0;
  const { round, turns } = loop(() => {});
  const portion = (): void => {
    portions++;
    turns.between(portion);
  };
  turns.between(portion);
  for (let at = 0; at < 10; at++) round();
  assert.equal(portions, 10);
});

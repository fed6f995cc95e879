import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  acceptsWrite,
  chooseWriter,
  Deque,
  expireReads,
  finishRead,
  leaveRead,
  loseReader,
  nextDeadline,
  nextRead,
  offerRead,
  pendingCount,
  type QueuedRead,
  type ReadLimits,
  type ReadState,
  readState,
  retryAfterMs,
  stuckAlone,
  stuckReaders,
  workerDelayMs,
} from '../../../storage/pool/pool-state.js';

const LIMITS: ReadLimits = { waitingMax: 2, waitingBytesMax: 100, inFlightMax: 1 };

let lastId = 0;
const readOf = (work: string, deadlineMs = 1000, bytes = 1): QueuedRead<string> => ({
  id: ++lastId,
  bytes,
  isHeavy: false,
  deadlineMs,
  work,
  attempts: 0,
  settled: false,
});

function stateOf(readers: number, limits: Partial<ReadLimits> = {}): ReadState<string> {
  const state = readState<string>(readers, { ...LIMITS, ...limits });
  for (const slot of state.readers) slot.up = true;
  return state;
}

function heavyStateOf(readers: number, forHeavy: number): ReadState<string> {
  const state = readState<string>(readers, LIMITS, forHeavy);
  for (const slot of state.readers) slot.up = true;
  return state;
}

test('a read goes to the reader with the least in flight', () => {
  const state = stateOf(2, { waitingMax: 10, inFlightMax: 2 });
  assert.deepEqual(
    ['a', 'b', 'c', 'd', 'e'].map((work) => offerRead(state, readOf(work))),
    [0, 1, 0, 1, 'wait'],
  );
});

test('a reader for heavy reads holds one, however many others hold: bodies that timed out in its mailbox took the memory of a small container', () => {
  const state = readState<string>(1, { ...LIMITS, inFlightMax: 4 }, 1);
  for (const slot of state.readers) slot.up = true;
  const heavy = (work: string) => ({ ...readOf(work), isHeavy: true });
  assert.deepEqual(
    [heavy('h'), heavy('i'), readOf('a'), readOf('b')].map((read) => offerRead(state, read)),
    [1, 'wait', 0, 0],
  );
});

test('heavy reads go to readers of their own and keep their own order, and others do not wait for them', () => {
  const state = heavyStateOf(1, 1);
  const heavy = ['h', 'i', 'j'].map((work) => ({ ...readOf(work), isHeavy: true }));
  assert.deepEqual(
    heavy.map((read) => offerRead(state, read)),
    [1, 'wait', 'wait'],
  );
  assert.equal(offerRead(state, readOf('a')), 0);
  assert.equal(nextRead(state), undefined);
  finishRead(state, 1, (heavy[0] as QueuedRead<string>).id);
  assert.deepEqual(nextRead(state), { reader: 1, read: heavy[1] });
  assert.equal(state.waitingCount, 1);
});

test('a heavy read is one like others while no reader of its kind is up', () => {
  const state = heavyStateOf(1, 1);
  (state.readers[1] as { up: boolean }).up = false;
  assert.equal(offerRead(state, { ...readOf('h'), isHeavy: true }), 0);
});

test('a read that its reader found too heavy waits for a reader for heavy ones, also where no room is left to wait', () => {
  const state = heavyStateOf(1, 1);
  const [first, second] = [readOf('first'), { ...readOf('second'), isHeavy: true }] as const;
  assert.deepEqual([offerRead(state, first), offerRead(state, second)], [0, 1]);
  assert.deepEqual([offerRead(state, readOf('a')), offerRead(state, readOf('b'))], ['wait', 'wait']);
  leaveRead(state, 0, first.id);
  assert.equal(first.isHeavy, true);
  assert.equal(nextRead(state)?.read.work, 'a');
  assert.equal(nextRead(state), undefined);
  finishRead(state, 1, second.id);
  assert.deepEqual(nextRead(state), { reader: 1, read: first });
  assert.equal(first.attempts, 1);
});

test('a read that has timed out is left to nobody', () => {
  const state = heavyStateOf(1, 1);
  const read = readOf('late', 100);
  offerRead(state, read);
  expireReads(state, 100);
  leaveRead(state, 0, read.id);
  assert.equal(pendingCount(state), 0);
  assert.equal(nextRead(state), undefined);
});

test('a reader is stuck in a read of its own when that has not ended a while after its deadline', () => {
  const deadlines = Float64Array.of(0, 90, 91, 1000);
  const more = [0, 0, 0, 0];
  const moreMs = (reader: number) => more[reader] as number;
  assert.deepEqual(stuckAlone(deadlines, 100, 10, moreMs), [1]);
  more[1] = 1;
  assert.deepEqual(stuckAlone(deadlines, 100, 10, moreMs), []);
});

test('a heavy read whose reader is lost waits among heavy ones, and expires at its deadline', () => {
  const state = heavyStateOf(1, 1);
  const heavy = { ...readOf('h', 100), isHeavy: true };
  assert.equal(offerRead(state, readOf('a')), 0);
  assert.equal(offerRead(state, heavy), 1);
  assert.deepEqual(loseReader(state, 1), []);
  assert.equal(nextRead(state), undefined);
  assert.equal(nextDeadline(state), 100);
  assert.deepEqual(expireReads(state, 100), [heavy]);
  assert.equal(state.waitingCount, 0);
});

test('reads beyond the bound are refused', () => {
  const state = stateOf(1);
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((work) => offerRead(state, readOf(work))),
    [0, 'wait', 'wait', 'busy'],
  );
});

test('waiting reads are bounded in bytes too, but one always may wait', () => {
  const state = stateOf(1);
  assert.deepEqual(
    [10, 1000, 1].map((bytes) => offerRead(state, readOf('a', 1000, bytes))),
    [0, 'wait', 'busy'],
  );
});

test('reads wait while no reader is up', () => {
  const state = readState<string>(1, LIMITS);
  assert.equal(offerRead(state, readOf('a')), 'wait');
  assert.equal(nextRead(state), undefined);
  (state.readers[0] as { up: boolean }).up = true;
  assert.equal(nextRead(state)?.read.work, 'a');
});

test('a finished read makes room for the one that waits longest', () => {
  const state = stateOf(1);
  const first = readOf('a');
  for (const read of [first, readOf('b'), readOf('c')]) offerRead(state, read);
  assert.equal(nextRead(state), undefined);
  assert.equal(finishRead(state, 0, first.id), first);
  assert.equal(nextRead(state)?.read.work, 'b');
  assert.equal(nextRead(state), undefined);
  assert.equal(state.readers[0]?.processed, 1);
});

test('an answer for an unknown read is nobody’s', () => {
  assert.equal(finishRead(stateOf(1), 0, 12345), undefined);
});

test('a read that timed out keeps its reader busy until that answers, and the answer is nobody’s', () => {
  const state = stateOf(1);
  const late = readOf('late', 100);
  const soon = readOf('soon', 200);
  offerRead(state, late);
  offerRead(state, soon);
  assert.equal(nextDeadline(state), 100);
  assert.deepEqual(expireReads(state, 99), []);
  assert.deepEqual(expireReads(state, 100), [late]);
  assert.equal(nextDeadline(state), 200);
  assert.equal(pendingCount(state), 2);
  assert.equal(nextRead(state), undefined);
  assert.equal(finishRead(state, 0, late.id), undefined);
  assert.equal(nextRead(state)?.read, soon);
});

test('a waiting read that timed out gives its place back', () => {
  const state = stateOf(1);
  offerRead(state, readOf('a', 1000));
  for (const work of ['b', 'c']) offerRead(state, readOf(work, 100));
  assert.equal(offerRead(state, readOf('d')), 'busy');
  assert.equal(expireReads(state, 100).length, 2);
  assert.equal(offerRead(state, readOf('e')), 'wait');
  assert.equal(state.waitingCount, 1);
});

test('reads of a lost reader are done first by the next one, in their order', () => {
  const state = stateOf(2, { waitingMax: 5, inFlightMax: 2 });
  for (const work of ['a', 'b', 'c', 'd', 'e']) offerRead(state, readOf(work));
  assert.deepEqual(loseReader(state, 0), []);
  for (const read of [...(state.readers[1] as { inFlight: Map<number, QueuedRead<string>> }).inFlight.values()])
    finishRead(state, 1, read.id);
  assert.deepEqual([nextRead(state)?.read.work, nextRead(state)?.read.work], ['a', 'c']);
});

test('a read that was lost with two readers is given up', () => {
  const state = stateOf(2);
  const read = readOf('a');
  assert.equal(offerRead(state, read), 0);
  assert.deepEqual(loseReader(state, 0), []);
  assert.equal(nextRead(state)?.reader, 1);
  assert.deepEqual(loseReader(state, 1), [read]);
  assert.equal(pendingCount(state), 0);
});

test('a reader that holds a read far past its deadline is stuck, unless it had no CPU meanwhile', () => {
  const state = stateOf(1);
  offerRead(state, readOf('a', 100));
  expireReads(state, 100);
  const none = () => 0;
  assert.deepEqual(stuckReaders(state, 149, 50, none), []);
  assert.deepEqual(stuckReaders(state, 150, 50, none), [0]);
  assert.deepEqual(
    stuckReaders(state, 150, 50, () => 30),
    [],
  );
  assert.deepEqual(
    stuckReaders(state, 180, 50, () => 30),
    [0],
  );
});

test('a replica goes to the writer with the fewest', () => {
  assert.equal(chooseWriter([2, 1, 1]), 1);
  assert.equal(chooseWriter([0]), 0);
});

test('a writer takes any write when idle, and no more than its bounds else', () => {
  const limits = { queuedMax: 3, queuedBytesMax: 100 };
  assert.equal(acceptsWrite(0, 0, 1000, limits), true);
  assert.equal(acceptsWrite(1, 90, 10, limits), true);
  assert.equal(acceptsWrite(1, 90, 11, limits), false);
  assert.equal(acceptsWrite(3, 0, 0, limits), false);
});

test('pauses grow with restarts, and waits with the queue, within bounds', () => {
  assert.deepEqual([0, 1, 2, 3, 20].map(workerDelayMs), [0, 50, 100, 200, 10_000]);
  assert.deepEqual([retryAfterMs(10, 1), retryAfterMs(1000, 1), retryAfterMs(1000, 100)], [50, 1000, 5000]);
});

test('a deque keeps its order from both ends as it grows', () => {
  const deque = new Deque<number>();
  const model: number[] = [];
  for (let i = 0; i < 200; i++) {
    if (i % 3 === 0) {
      deque.unshift(i);
      model.unshift(i);
    } else {
      deque.push(i);
      model.push(i);
    }
    if (i % 5 === 0) assert.equal(deque.shift(), model.shift());
    assert.equal(deque.peek(), model[0]);
  }
  assert.deepEqual([...deque], model);
  assert.equal(deque.length, model.length);
});

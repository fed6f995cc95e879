/** A thread that takes turns at scratch of changing levels, and tells how often another one was there too. */

import { parentPort, workerData } from 'node:worker_threads';
import { Deadline } from '../../../storage/threads/deadline.js';
import { ScratchTurns } from '../../../storage/threads/scratch-turns.js';

export interface TurnTask {
  readonly reader: number;
  readonly turns: Int32Array;
  /** By node: who uses its scratch. */
  readonly used: Int32Array;
  readonly reads: number;
}

const { reader, reads, turns, used } = workerData as TurnTask;
const own = new ScratchTurns(turns, reader);
const deadline = new Deadline();
let clashes = 0;
let random = reader + 1;

for (let read = 0; read < reads; read++) {
  const levels = [1, 2, 3].filter(() => {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    return random >= 2 ** 31;
  });
  if (read % 2 === 1) levels.reverse();
  const nodes = levels.map((level) => {
    own.take(level, deadline);
    const node = (turns.length / 2 + reader) >> level;
    if (Atomics.exchange(used, node, reader + 1) !== 0) clashes++;
    return node;
  });
  // A piece of work.
  for (let step = 0; step < 2000; step++) random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
  for (const node of nodes) if (Atomics.exchange(used, node, 0) !== reader + 1) clashes++;
  own.giveBack();
}

parentPort?.postMessage(clashes);

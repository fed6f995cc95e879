/**
 * Turns at scratch that readers share, where a segment's memory has no room for scratch of each of them.
 *
 * Readers are the leaves of a binary tree, and a segment of level L has scratch for each node L above them. A read has its turn at it
 * when it holds that node, and all below it on its way from the leaf.
 *
 * - Scratch-T1: only the reader that holds the node touches the scratch, from the first use in a read until the read is over, as what kernels
 *   return are views on it. One turn is for all segments of a level or a lower one.
 * - Scratch-T2: nodes are taken from the leaf up, and given back together. So all readers take the nodes that they have in common in one order, and
 *   none waits for one that waits for it.
 * - Scratch-T3: who waits gives up at its deadline. What a reader held that is lost, the main thread gives back (`ReaderPool`).
 */

import type { Deadline } from './deadline.js';

/** How often a waiting read looks at its deadline, and whether its client is still there. */
const LOOK_MS = 20;
/** A reader that has woken another one leaves it so long to take its turn. */
const YIELD_MS = 1;

/** For all readers of a process: Int32Array in shared memory. The node n has its parent at n / 2; 0: nobody holds it, else 1 + the reader that does. */
export function scratchTurns(readers: number): Int32Array {
  const leaves = 2 ** Math.ceil(Math.log2(Math.max(1, readers)));
  return new Int32Array(new SharedArrayBuffer(2 * leaves * Int32Array.BYTES_PER_ELEMENT));
}

/** A reader's own turns. */
export class ScratchTurns {
  private readonly leaf: number;
  private readonly name: number;
  /** The highest level that it holds; 0: none. */
  private level = 0;
  /** The node that another reader was woken for; 0: none. */
  private yielded = 0;

  constructor(
    private readonly holders: Int32Array,
    reader: number,
  ) {
    this.leaf = holders.length / 2 + reader;
    this.name = reader + 1;
  }

  /** Waits until this reader has its turn at scratch of the level, 1 or more. Nothing happens if it has it. Errors: `timeout`. */
  take(level: number, deadline: Deadline): void {
    while (this.level < level) {
      this.takeNode(this.leaf >> (this.level + 1), deadline);
      this.level++;
    }
  }

  /** Called when a read is over. */
  giveBack(): void {
    for (; this.level > 0; this.level--) this.giveBackNode(this.leaf >> this.level);
  }

  /** Gives back what the reader held in a thread that is lost. */
  giveBackAll(): void {
    for (let node = this.leaf >> 1; node > 0; node >>= 1) this.giveBackNode(node);
  }

  private takeNode(node: number, deadline: Deadline): void {
    const { holders, name } = this;
    // Else a busy reader would come first each time: the one that it wakes needs a moment.
    if (this.yielded === node) Atomics.wait(holders, node, 0, YIELD_MS);
    this.yielded = 0;
    for (;;) {
      const holder = Atomics.compareExchange(holders, node, 0, name);
      if (holder === 0) return;
      deadline.check();
      Atomics.wait(holders, node, holder, LOOK_MS);
    }
  }

  private giveBackNode(node: number): void {
    const { holders, name } = this;
    if (Atomics.compareExchange(holders, node, name, 0) === name && Atomics.notify(holders, node, 1) > 0) this.yielded = node;
  }
}

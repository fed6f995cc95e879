/**
 * When replicas were last used, told by all threads in shared memory: by ticks, which the main thread counts and every thread reads, since
 * threads have clocks of their own (Sleep-S4).
 */

/** More replicas than this share their places, and stay awake together. */
const PLACES = 1 << 16;

export class ReplicaUses {
  /** Int32Array [PLACES + 1]: the tick, then for each place the tick of its last use. */
  constructor(readonly ticks: Int32Array = new Int32Array(new SharedArrayBuffer((PLACES + 1) * Int32Array.BYTES_PER_ELEMENT))) {}

  get tick(): number {
    return Atomics.load(this.ticks, 0);
  }

  nextTick(): number {
    return Atomics.add(this.ticks, 0, 1) + 1;
  }

  note(place: number): void {
    this.ticks[1 + (place % PLACES)] = this.ticks[0] as number;
  }

  lastUse(place: number): number {
    return this.ticks[1 + (place % PLACES)] as number;
  }
}

/** How fast vectors come to the replicas of a node: what is built of them meanwhile shares its CPUs. */

import type { ReplicaKey, ReplicaStats } from '../../storage/threads/messages.js';
import { PACED_GATHER_MS } from './plan.js';

/** What came before is not counted: rows of a stream gather for so long before they are built. */
const WINDOW_MS = PACED_GATHER_MS;
const STEP_MS = 250;
/** Replicas that get so many times as much as one are not counted beside it: shards of one collection get about as much as each other. */
const FASTER_RATIO = 2;

/** Of all replicas that were written to in the window. */
export class NodePace {
  readonly #meters = new Map<ReplicaKey, Meter>();

  /** bytes: of vectors. */
  came(key: ReplicaKey, bytes: number, nowMs: number): void {
    const meter = this.#meters.get(key) ?? new Meter();
    this.#meters.set(key, meter);
    meter.came(bytes, nowMs);
  }

  /**
   * Bytes of vectors a second that a replica gets together with those that get no more than twice as much. So a slow stream does not wait for a fast
   * upload beside it, and the shards of a fast upload are not taken for slow streams.
   */
  bytesPerSecond(key: ReplicaKey, nowMs: number): number {
    const own = this.#meters.get(key)?.bytesPerSecond(nowMs) ?? 0;
    let sum = 0;
    for (const [other, meter] of this.#meters) {
      const rate = meter.bytesPerSecond(nowMs);
      if (rate === 0) this.#meters.delete(other);
      else if (rate <= FASTER_RATIO * own) sum += rate;
    }
    return sum;
  }
}

interface Mark {
  readonly nowMs: number;
  /** All that had come before. */
  readonly bytes: number;
}

class Meter {
  /** Of the window, `STEP_MS` apart or more, oldest first. */
  #marks: Mark[] = [];
  #bytes = 0;
  #lastMs = 0;

  came(bytes: number, nowMs: number): void {
    const last = this.#marks.at(-1);
    if (last === undefined || this.#isOver(nowMs)) this.#marks = [{ nowMs, bytes: this.#bytes }];
    else if (nowMs - last.nowMs >= STEP_MS) this.#marks.push({ nowMs, bytes: this.#bytes });
    this.#bytes += bytes;
    this.#lastMs = nowMs;
  }

  /** 0 once nothing has come for a whole window. */
  bytesPerSecond(nowMs: number): number {
    const marks = this.#marks;
    while (marks[1] !== undefined && nowMs - marks[1].nowMs >= WINDOW_MS) marks.shift();
    const first = marks[0];
    if (first === undefined || this.#isOver(nowMs)) return 0;
    return ((this.#bytes - first.bytes) / Math.max(STEP_MS, nowMs - first.nowMs)) * 1000;
  }

  #isOver(nowMs: number): boolean {
    return nowMs - this.#lastMs > WINDOW_MS;
  }
}

/** Bytes of vectors that were written between two figures of a replica. */
export function writtenBytes(before: ReplicaStats, after: ReplicaStats): number {
  const known = new Map(before.segments.map(({ id, vectorBytes }) => [id, vectorBytes]));
  const growing = after.segments.filter(({ kind }) => kind === 'appendable');
  return growing.reduce((sum, { id, vectorBytes }) => sum + Math.max(0, vectorBytes - (known.get(id) ?? 0)), 0);
}

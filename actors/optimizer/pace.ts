/** How fast vectors come to a node, to all its replicas together: their builds share its CPUs. */

import type { ReplicaStats } from '../../storage/threads/messages.js';

/** What came before is not counted. */
const WINDOW_MS = 4000;
const STEP_MS = 250;

interface Mark {
  readonly nowMs: number;
  /** All that had come before. */
  readonly bytes: number;
}

export class NodePace {
  /** Of the window, `STEP_MS` apart or more, oldest first. */
  #marks: Mark[] = [];
  #bytes = 0;

  /** bytes: of vectors. */
  came(bytes: number, nowMs: number): void {
    const last = this.#marks.at(-1);
    if (last === undefined || nowMs - last.nowMs > WINDOW_MS) this.#marks = [{ nowMs, bytes: this.#bytes }];
    else if (nowMs - last.nowMs >= STEP_MS) this.#marks.push({ nowMs, bytes: this.#bytes });
    this.#bytes += bytes;
  }

  /** Bytes of vectors a second, over the last seconds. */
  bytesPerSecond(nowMs: number): number {
    const marks = this.#marks;
    while (marks[1] !== undefined && nowMs - marks[1].nowMs >= WINDOW_MS) marks.shift();
    const first = marks[0];
    return first === undefined ? 0 : ((this.#bytes - first.bytes) / Math.max(STEP_MS, nowMs - first.nowMs)) * 1000;
  }
}

/** Bytes of vectors that were written between two figures of a replica. */
export function writtenBytes(before: ReplicaStats, after: ReplicaStats): number {
  const known = new Map(before.segments.map(({ id, vectorBytes }) => [id, vectorBytes]));
  const growing = after.segments.filter(({ kind }) => kind === 'appendable');
  return growing.reduce((sum, { id, vectorBytes }) => sum + Math.max(0, vectorBytes - (known.get(id) ?? 0)), 0);
}

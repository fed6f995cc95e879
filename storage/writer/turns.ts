/** How long a replica works before the other ones of its home worker have their turn: decisions only. */

/** The other replicas have work now and then: a commit of their own takes about as long as this. */
const SHARED_MS = 4;
/** Nobody else has had work for a while: each slice costs a commit, so they are long. */
const ALONE_MS = 50;
/** How long others count after their last message. */
const SHARED_AFTER_MS = 1000;

/** Milliseconds of a slice. othersLastMs: when another replica got its last message; both by the same clock. */
export function sliceMs(nowMs: number, othersLastMs: number): number {
  return nowMs - othersLastMs < SHARED_AFTER_MS ? SHARED_MS : ALONE_MS;
}

/** Who got messages last: two replicas say for each one when another one did. */
export class Turns {
  private last = { key: '', ms: Number.NEGATIVE_INFINITY };
  private before = { key: '', ms: Number.NEGATIVE_INFINITY };

  came(key: string, nowMs: number): void {
    if (key !== this.last.key) this.before = this.last;
    this.last = { key, ms: nowMs };
  }

  /** When a replica other than this one got its last message. */
  othersLast(key: string): number {
    return key === this.last.key ? this.before.ms : this.last.ms;
  }
}

/**
 * The room that builds, openings and writes have within the node's memory (rules Memory-M3 and Memory-M4 in `storage/memory/ledger.ts`). What a
 * build will need is not seen in what the process uses until it has taken it, so it is held ahead: until its end the process counts as
 * using no less than it did when the build began plus what the build may need.
 */

import { megabytes } from '../../storage/memory/ledger.js';

/** What the process uses and may use, in bytes. */
export interface MemoryFigures {
  readonly budgetBytes: number;
  /** As measured at that time: lately is for what is asked often. */
  usedBytes(when: 'now' | 'lately'): number;
  /** Shows what is held. */
  noteHeld(bytes: number): void;
}

/** Room that was given; `release` may be called twice. */
export interface HeldRoom {
  release(): void;
}

/** Writes leave so much of the budget to builds, which make room again. */
const WRITE_SHARE = 0.85;
/** A node that was found to use less than this much of the budget is not measured again for each write. */
const MEASURED_SHARE = 0.5;
/** Copies of other replicas leave less, so that the leader refuses its clients before a follower refuses the leader. */
const COPY_SHARE = 0.925;
/** A build has its sources in memory, so that its result should be no larger than a part of the budget. */
const RESULT_SHARE = 0.2;

export class MemoryRoom {
  /** What all that is held may come to. */
  #ceiling = 0;
  #held = 0;

  /** caution: by how much more than estimated a build is taken to need, after the process was killed for memory. */
  constructor(
    private readonly figures: MemoryFigures | null,
    readonly caution = 1,
  ) {}

  /** What the process counts as using. */
  committedBytes(when: 'now' | 'lately' = 'lately'): number {
    const used = this.figures?.usedBytes(when) ?? 0;
    return this.#held > 0 ? Math.max(used, this.#ceiling) : used;
  }

  /** Holds memory for a build; null: there is not enough. bytes: as estimated. */
  hold(bytes: number): HeldRoom | null {
    return this.holdExactly(bytes * this.caution);
  }

  /** Holds memory for what is known better. */
  holdExactly(needed: number): HeldRoom | null {
    if (this.figures === null) return FREE;
    // A node that opens its collections uses a lot more than a moment ago.
    const committed = this.committedBytes('now');
    if (committed + needed > this.figures.budgetBytes) return null;
    this.#ceiling = committed + needed;
    this.#held += needed;
    this.figures.noteHeld(this.#held);
    let isHeld = true;
    return {
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#ceiling -= needed;
        this.#held -= needed;
        this.figures?.noteHeld(this.#held);
      },
    };
  }

  /** Whether points may take so much more. */
  takesPoints(bytes: number): boolean {
    const { figures, writeBytesMax } = this;
    if (figures === null) return true;
    const lately = this.committedBytes() + bytes;
    if (lately > writeBytesMax) return false;
    // What was measured half a second ago says little of writes that bring a hundred megabytes a second.
    return lately <= figures.budgetBytes * MEASURED_SHARE || this.committedBytes('now') + bytes <= writeBytesMax;
  }

  /** What the process may use for writes to be taken. */
  get writeBytesMax(): number {
    return this.figures === null ? Number.POSITIVE_INFINITY : Math.floor(this.figures.budgetBytes * WRITE_SHARE);
  }

  /** As `writeBytesMax`, for copies of other replicas. */
  get copyBytesMax(): number {
    return this.figures === null ? Number.POSITIVE_INFINITY : Math.floor(this.figures.budgetBytes * COPY_SHARE);
  }

  /** The most bytes of vectors that a segment should have which a build makes of several. */
  get resultBytesMax(): number {
    return this.figures === null ? Number.POSITIVE_INFINITY : this.figures.budgetBytes * RESULT_SHARE;
  }

  /** The most that a build may be estimated at to have room now. */
  get leftBytes(): number {
    return this.figures === null ? Number.POSITIVE_INFINITY : this.#left / this.caution;
  }

  /** Why there is no room for a build of so much. */
  describe(bytes: number): string {
    return this.describeExactly(bytes * this.caution);
  }

  get #left(): number {
    return Math.max(0, (this.figures?.budgetBytes ?? 0) - this.committedBytes());
  }

  describeExactly(needed: number): string {
    return `it may need ${megabytes(needed)} of memory, and ${megabytes(this.#left)} of this node's budget are left`;
  }
}

const FREE: HeldRoom = { release: () => {} };

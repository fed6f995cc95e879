/** Files of restores that another node is sending here: those whose sender has gone away must not stay. */

import type { Cancel, Timers } from '../runtime/ports.js';

/** Longer than a sender waits for the answer to a part (`PART_MS` in `send.ts`), with what it may do between two parts. */
export const PARTS_KEPT_MS = 300_000;

export interface ReceivedPartsPorts {
  readonly timers: Timers;
  /** Removes a folder, also one that is not there. */
  readonly remove: (folder: string) => Promise<void>;
}

export class ReceivedParts {
  /** By folder: ends the wait for its next part. */
  readonly #waits = new Map<string, Cancel>();

  constructor(private readonly ports: ReceivedPartsPorts) {}

  /** A part comes for the folder: it is removed when no other one follows within `PARTS_KEPT_MS`. */
  expectMore(folder: string): void {
    this.settle(folder);
    const cancel = this.ports.timers.after(PARTS_KEPT_MS, () => {
      this.#waits.delete(folder);
      // A start removes what stays.
      this.ports.remove(folder).catch(() => {});
    });
    this.#waits.set(folder, cancel);
  }

  /** No part is waited for any more: the caller has the folder. */
  settle(folder: string): void {
    this.#waits.get(folder)?.();
    this.#waits.delete(folder);
  }
}

/**
 * The originals of a replica's segments while it is open: those that came unread from their files are verified first, then they come to memory
 * or are mapped, and what searches have read of mapped ones is let go of again and again.
 */

import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { rethrowBroken } from '../../protocols/invariant.js';
import type { FilePages } from '../memory/system-calls.js';
import type { ReplicaStore } from '../replica/store.js';

/** After an opening, requests come first: what they need is compiled then. */
const ARRIVAL_AFTER_MS = 3000;
/** Between parts of originals, which take some 5 ms each. */
const ARRIVAL_PAUSE_MS = 5;
/**
 * Originals that searches have read are let go of so often: all 100 MB of 200,000 × 128 come back for 2 ms of CPU (600 faults of 3 µs, as the system maps
 * many neighbouring pages at a time), and letting them go takes 0.5 ms.
 */
const TEND_EVERY_MS = 1000;

export interface OriginalsHost {
  /** For messages. */
  readonly key: string;
  /** Null where files cannot be put in the place of memory. Asked for when it is needed. */
  readonly pages: FilePages | null;
  after(ms: number, run: () => void): void;
  warn(message: string): void;
  /** Something is to be built again. */
  tellStats(): void;
  /** The files are damaged or cannot be read any more. */
  fail(error: unknown): void;
}

type OriginalsOf = Pick<ReplicaStore, 'awaitsOriginals' | 'awaitsVerifying' | 'bringOriginals' | 'tendOriginals' | 'verifyFiles'>;

export class Originals {
  private isOver = false;
  /** Settled when nothing is read any more. */
  private reading: Promise<void> = Promise.resolve();
  /** Whether `tend` is to come again. */
  private willTend = false;

  constructor(
    private readonly store: OriginalsOf,
    private readonly host: OriginalsHost,
  ) {}

  /** Called once the store is open. */
  begin(): void {
    if (this.store.awaitsVerifying) this.readAfter(0, () => this.verify());
    else this.arrive();
  }

  /** Nothing is begun any more. Settled when nothing is read. */
  async end(): Promise<void> {
    this.isOver = true;
    await this.reading;
  }

  /** Now, and again and again while any are pages of their files. Called when there may be new ones, too. */
  tend(): void {
    const { host, store } = this;
    const { pages } = host;
    if (this.isOver || pages === null) return;
    let areMapped = true;
    try {
      areMapped = store.tendOriginals(pages);
    } catch (error) {
      rethrowBroken(error);
      this.warn('vectors are not mapped from their file', error);
    }
    if (!areMapped || this.willTend) return;
    this.willTend = true;
    host.after(TEND_EVERY_MS, () => {
      this.willTend = false;
      this.tend();
    });
  }

  /** All are verified. */
  private arrive(): void {
    this.tend();
    // What is damaged by then was sound at the opening.
    if (this.store.awaitsOriginals) this.readAfter(ARRIVAL_AFTER_MS, () => this.bring());
  }

  /** Reads are verified block by block meanwhile. */
  private async verify(): Promise<void> {
    let damages: readonly string[] = [];
    const isDone = await this.read('vectors cannot be verified', async () => {
      damages = await this.store.verifyFiles(this.pauses(0));
    });
    if (!isDone || this.isOver) return;
    for (const damage of damages) this.host.warn(`replica ${this.host.key}: ${damage}; it is built again`);
    if (damages.length > 0) this.host.tellStats();
    this.arrive();
  }

  private async bring(): Promise<void> {
    await this.read('vectors go on to be read from their file', () => this.store.bringOriginals(this.pauses(ARRIVAL_PAUSE_MS)));
  }

  private readAfter(ms: number, read: () => Promise<void>): void {
    this.host.after(ms, () => {
      if (!this.isOver) this.reading = read();
    });
  }

  /** Whether it came to its end. What goes wrong is told, unless the store is being closed. wrong: what that means. */
  private async read(wrong: string, read: () => Promise<void>): Promise<boolean> {
    try {
      await read();
      return true;
    } catch (error) {
      if (!this.isOver) {
        this.warn(wrong, error);
        this.host.fail(error);
      }
      return false;
    }
  }

  /** Pauses of so long between parts of a long work, which ends when the store is closed. */
  private pauses(ms: number): () => Promise<void> {
    return async () => {
      await new Promise<void>((resolve) => this.host.after(ms, resolve));
      if (this.isOver) throw new TroupeError('unavailable', `replica ${this.host.key} is being closed`);
    };
  }

  private warn(what: string, error: unknown): void {
    this.host.warn(`replica ${this.host.key}: ${what}: ${errorFacts(error).detail}`);
  }
}

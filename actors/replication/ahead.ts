/**
 * What a leader remembers, also through a crash, of having acknowledged alone (L9): while others may lack what it has, nobody else may
 * lead, however it does. Kept on disk before the first such acknowledgement, and until all that it waits for have everything.
 */

import type { CollectionStore } from '../collection/store.js';

export class Ahead {
  /** Not known before it has been read. */
  #isAhead: boolean | null = null;
  #work: Promise<unknown> = Promise.resolve();
  #ends = false;

  constructor(
    private readonly store: Pick<CollectionStore, 'isAhead' | 'noteAhead'>,
    private readonly folder: string,
    private readonly shardId: number,
  ) {}

  /** Whether other replicas may lack something. */
  get may(): boolean {
    return this.#isAhead !== false;
  }

  /** Reads what was noted. Errors: `storage`. */
  read(): Promise<void> {
    return this.#next(async () => {
      this.#isAhead ??= await this.store.isAhead(this.folder, this.shardId);
    });
  }

  /** Errors: `storage`; then nothing may be acknowledged alone. */
  begin(): Promise<void> {
    return this.#next(async () => {
      if (this.#isAhead === true) return;
      await this.store.noteAhead(this.folder, this.shardId, true);
      this.#isAhead = true;
    });
  }

  /** Once others have everything. isSo: whether they still have when it is written. */
  end(isSo: () => boolean): void {
    if (this.#isAhead !== true || this.#ends) return;
    this.#ends = true;
    const ended = this.#next(async () => {
      if (!isSo()) return;
      await this.store.noteAhead(this.folder, this.shardId, false);
      this.#isAhead = false;
    });
    // It stays noted, and is tried again.
    const done = () => {
      this.#ends = false;
    };
    ended.then(done, done);
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => {});
    return done;
  }
}

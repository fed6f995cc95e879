/**
 * What a leader remembers, also through a crash, of having acknowledged alone (Log-L9): while others may lack what it has, nobody else may
 * lead, however it does. Kept on disk before the first such acknowledgement, and until all that it waits for have everything.
 */

import type { CollectionStore } from '../collection/store.js';
import type { NodeView } from '../context/view.js';
import type { Assignments } from './assignments.js';

/** Whether something that this node leads may have been acknowledged by it alone, in this process or an earlier one. */
export function hasGoneAlone({ agreed, peerId }: Pick<Assignments, 'agreed' | 'peerId'>, view: Pick<NodeView, 'collections'>): boolean {
  // Of shards and replicas that are not known yet nobody can tell.
  if (agreed === null) return true;
  for (const [name, { shards }] of agreed.collections) {
    const entry = view.collections.get(name);
    for (const [shardId, { leader }] of shards)
      if (leader === peerId && entry?.replications.get(shardId)?.mayBeAhead() !== false) return true;
  }
  return false;
}

export class Ahead {
  #isAhead: boolean;
  #work: Promise<unknown> = Promise.resolve();
  #ends = false;

  constructor(
    private readonly store: Pick<CollectionStore, 'isAhead' | 'noteAhead'>,
    private readonly folder: string,
    private readonly shardId: number,
  ) {
    // At once: a replica without files is there for a moment only, in which its node says so.
    this.#isAhead = store.isAhead(folder, shardId);
  }

  /** Whether other replicas may lack something. */
  get may(): boolean {
    return this.#isAhead;
  }

  /** Errors: `storage`; then nothing may be acknowledged alone. */
  begin(): Promise<void> {
    return this.#next(async () => {
      if (this.#isAhead) return;
      await this.store.noteAhead(this.folder, this.shardId, true);
      this.#isAhead = true;
    });
  }

  /** Once others have everything. isSo: whether they still have when it is written. */
  end(isSo: () => boolean): void {
    if (!this.#isAhead || this.#ends) return;
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

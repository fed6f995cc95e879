/** A replica of the simulation's engine while it is open: its log is written and applied in the order in which that is asked for. */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import type { ReplicaKey } from '../../storage/threads/messages.js';
import type { VirtualDisk } from './disk.js';
import { applyNext, lastOf, type StoredReplica, trim } from './replica-files.js';

interface Parts {
  readonly key: ReplicaKey;
  readonly folder: string;
  readonly config: CollectionConfig;
  readonly stored: StoredReplica;
  readonly disk: VirtualDisk;
  /** Applied operations that its log keeps. */
  readonly logKept: number;
  /** Its figures have changed. */
  readonly tell: (replica: OpenReplica) => void;
}

const RETRY_MS = 300;

export class OpenReplica {
  readonly key: ReplicaKey;
  readonly stored: StoredReplica;
  config: CollectionConfig;
  /** Of the last operation that is on its way to the log. */
  end: LogTag;
  commits = 0;
  /** Its last piece of work; never rejects. */
  #turn: Promise<unknown> = Promise.resolve();
  #applying = false;
  /** Who waits until an operation is applied. */
  #waiting: { readonly index: number; readonly resolve: () => void }[] = [];

  constructor(private readonly parts: Parts) {
    this.key = parts.key;
    this.stored = parts.stored;
    this.config = parts.config;
    this.end = lastOf(parts.stored);
  }

  inTurn<Value>(run: () => Promise<Value>): Promise<Value> {
    const result = this.#turn.then(run);
    this.#turn = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  /** Runs when everything that was logged before is applied. */
  whenApplied<Value>(run: () => Value | Promise<Value>): Promise<Value> {
    return this.inTurn(async () => {
      await this.applied(lastOf(this.stored).index);
      return run();
    });
  }

  /** early: does not wait for the disk, against the rules. */
  async log(entries: readonly ShardEntry[], early: boolean): Promise<void> {
    const { disk, folder, key } = this.parts;
    const { stored } = this;
    const carryOut = () => {
      stored.entries = [...stored.entries, ...entries];
      disk.logged(folder, entries);
    };
    const failed = () => {
      this.end = lastOf(stored);
    };
    this.end = entries.at(-1)?.tag ?? this.end;
    const written = disk.write(`log of ${key}`, carryOut, failed).then(() => this.#apply());
    if (!early) return written;
    written.catch(() => {});
  }

  applied(index: number): Promise<void> {
    if (this.stored.applied.index >= index) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ index, resolve });
      this.#apply();
    });
  }

  /** Within a write of the disk. */
  applyAll(): void {
    const { stored } = this;
    for (const entry of stored.entries) {
      if (entry.tag.index <= stored.applied.index) continue;
      applyNext(stored, entry);
    }
    this.commits += 1;
    trim(stored, this.parts.logKept);
  }

  /** Begins to apply what is logged, unless it is under way. */
  #apply(): void {
    const { disk, key, tell } = this.parts;
    if (this.#applying || lastOf(this.stored).index === this.stored.applied.index) return;
    this.#applying = true;
    const ended = () => {
      this.#applying = false;
      tell(this);
      const { index } = this.stored.applied;
      const done = this.#waiting.filter((waiting) => waiting.index <= index);
      this.#waiting = this.#waiting.filter((waiting) => waiting.index > index);
      for (const { resolve } of done) resolve();
      this.#apply();
    };
    // A full disk has room again one day.
    const again = () => {
      this.#applying = false;
      disk.later(RETRY_MS, () => this.#apply());
    };
    disk.write(`apply ${key}`, () => this.applyAll()).then(ended, again);
  }
}

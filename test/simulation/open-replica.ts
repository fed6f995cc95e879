/** A replica of the simulation's engine while it is open: its log is written and applied in the order in which that is asked for. */

import { TroupeError } from '../../protocols/errors.js';
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
  /** Against the rules: what cannot be applied now is passed over. */
  readonly passesOver: boolean;
  /** Its figures have changed. */
  readonly tell: (replica: OpenReplica) => void;
  /** What is logged could not be applied for long. */
  readonly failed: (error: TroupeError) => void;
}

/** As in `storage/writer/replica-writer.ts`. */
const FIRST_PAUSE_MS = 100;
const PAUSE_MS_MAX = 5000;
const TRIES_MAX = 16;

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
  /** Tries in a row in which what is logged could not be applied (Op-O5). */
  #failures = 0;
  #isClosed = false;
  /** Who waits until an operation is applied. */
  #waiting: { readonly index: number; readonly resolve: () => void; readonly reject: (error: unknown) => void }[] = [];

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

  /** Resolves when nothing of it is under way. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#settle(new TroupeError('unavailable', `replica ${this.key} is closed`));
    return this.inTurn(async () => {});
  }

  /** Nothing is logged behind what cannot be applied. Errors: `unavailable`; nothing is done then. */
  async checkApplied(): Promise<void> {
    if (this.#failures === 0) return;
    const refuse = (error: unknown) => {
      throw new TroupeError('unavailable', 'the write was not begun', { cause: error, outcome: 'none', retryAfterMs: 1000 });
    };
    await this.applied(lastOf(this.stored).index).catch(refuse);
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

  /** Errors: `storage` if a try to apply it fails; it is tried again. */
  applied(index: number): Promise<void> {
    if (this.stored.applied.index >= index) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ index, resolve, reject });
      this.#apply();
    });
  }

  /** Within a write of the disk. Returns why an operation cannot be applied now; those before it are. */
  applyAll(): TroupeError | null {
    const { disk, logKept, passesOver } = this.parts;
    const { stored } = this;
    for (const entry of stored.entries) {
      if (entry.tag.index <= stored.applied.index) continue;
      if (!disk.meetsLack()) applyNext(stored, entry);
      else if (passesOver) stored.applied = entry.tag;
      else return new TroupeError('storage', `operation ${entry.tag.index} is logged and cannot be applied now: no descriptor is left`);
    }
    this.commits += 1;
    trim(stored, logKept);
    return null;
  }

  /** Begins to apply what is logged, unless it is under way. */
  #apply(): void {
    const { disk, key, tell } = this.parts;
    if (this.#isClosed) {
      this.#settle(new TroupeError('unavailable', `replica ${key} is closed`));
      return;
    }
    if (this.#applying || lastOf(this.stored).index === this.stored.applied.index) return;
    this.#applying = true;
    let lack: TroupeError | null = null;
    const carryOut = () => {
      lack = this.applyAll();
    };
    const ended = () => {
      if (lack !== null) return again(lack);
      this.#applying = false;
      this.#failures = 0;
      tell(this);
      this.#settle(null);
      this.#apply();
    };
    const again = (error: TroupeError) => {
      this.#applying = false;
      this.#failures += 1;
      this.#settle(error);
      if (this.#isClosed) return;
      if (this.#failures > TRIES_MAX) this.parts.failed(error);
      else disk.later(Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * 2 ** this.#failures), () => this.#apply());
    };
    disk.write(`apply ${key}`, carryOut).then(ended, again);
  }

  /** Tells those who wait for what is applied; the others what keeps it from being applied, if anything does. */
  #settle(error: TroupeError | null): void {
    const { index } = this.stored.applied;
    const waiting = this.#waiting;
    this.#waiting = error === null ? waiting.filter((each) => each.index > index) : [];
    for (const each of waiting) {
      if (each.index <= index) each.resolve();
      else if (error !== null) each.reject(error);
    }
  }
}

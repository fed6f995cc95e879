/** A node's disk: what is synced stays, what is not may be gone or there after a crash, and a torn write is as if it had not been. */

import { TroupeError } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import {
  type ConsensusStore,
  type ConsensusWrite,
  type Entry,
  NO_WRITE,
  NOTHING_STORED,
  type StoredConsensus,
} from '../../protocols/model/consensus.js';
import type { ShardEntry } from '../../protocols/model/shard-log.js';
import type { Stream } from './random.js';
import type { StoredReplica } from './replica-files.js';
import type { Life, World } from './world.js';

export interface DiskSettings {
  /** Time of one write with its sync. */
  latencyMs: { low: number; high: number };
  full: boolean;
}

/** What a disk does against its contract, to see whether the simulation finds it. */
export interface DiskMistakes {
  /** Says that a write is on disk before it is. */
  readonly acknowledgesEarly?: boolean;
  /** Loads as if nothing had been applied behind the snapshot. */
  readonly forgetsApplied?: boolean;
}

/** A change of files that is under way. */
interface PendingWrite {
  readonly carryOut: () => void;
  /** At once, before the node hears of it. */
  readonly failed: (error: TroupeError) => void;
  readonly done: (error: TroupeError | null) => void;
  readonly name: string;
}

export class VirtualDisk {
  readonly settings: DiskSettings = { latencyMs: { low: 0.3, high: 3 }, full: false };
  /** Synced. */
  consensus: StoredConsensus = NOTHING_STORED;
  aliases: AliasMap = new Map();
  /** Documents of collections by folder; see `collection-files.ts`. */
  readonly folders = new Map<string, unknown>();
  /** The engine's, by folder. */
  readonly replicas = new Map<string, StoredReplica>();
  /** Hears of what comes into their logs. */
  logged: (folder: string, entries: readonly ShardEntry[]) => void = () => {};
  /** Other files, by path. */
  readonly files = new Map<string, Uint8Array>();
  /** So many tries to apply what is logged meet a lack of memory or descriptors; infinite: all, until it is over. */
  lacking = 0;
  /** Those that met it. */
  lacked = 0;
  /** Writes that ended in a crash half done. */
  torn = 0;
  #pending: PendingWrite[] = [];
  #busyUntilMs = 0;
  /** Disks work on for the node's life that uses them. */
  #life: Life | null = null;

  constructor(
    readonly name: string,
    private readonly world: World,
    private readonly random: Stream,
    readonly tell: (what: string) => void,
    private readonly mistakes: DiskMistakes = {},
  ) {}

  /** The node that uses it from now on. */
  attach(life: Life): void {
    this.#life = life;
    this.#pending = [];
    this.#busyUntilMs = this.world.nowMs;
  }

  /** The node is gone at once. Of the writes under way, the first few may have come through. */
  crash(): void {
    const under = this.#pending;
    this.#pending = [];
    const survivors = this.random.chance(0.5) ? 0 : this.random.integer(0, under.length);
    for (const write of under.slice(0, survivors)) write.carryOut();
    if (under.length > survivors && this.random.chance(0.5)) this.torn += 1;
    if (under.length > 0) this.tell(`crashes with ${under.length} writes under way, ${survivors} of them came through`);
    this.#life = null;
  }

  /** A new disk in the place of this one. */
  empty(): void {
    this.consensus = NOTHING_STORED;
    this.aliases = new Map();
    this.folders.clear();
    this.replicas.clear();
    this.files.clear();
  }

  /** Whether what is about to be applied meets a lack of memory or descriptors. */
  meetsLack(): boolean {
    if (this.lacking === 0) return false;
    this.lacking -= 1;
    this.lacked += 1;
    return true;
  }

  /** Resolves when `carryOut` has happened for good. Errors: `storage` when the disk is full. */
  write(name: string, carryOut: () => void, failed: (error: TroupeError) => void = () => {}): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (error: TroupeError | null) => (error === null ? resolve() : reject(error));
      const write: PendingWrite = { carryOut, failed, done, name };
      this.#pending.push(write);
      const { low, high } = this.settings.latencyMs;
      this.#busyUntilMs = Math.max(this.#busyUntilMs, this.world.nowMs) + this.random.between(low, high);
      this.world.after(this.#busyUntilMs - this.world.nowMs, () => this.#finish(write));
    });
  }

  /** A collection's folder is gone with all that is in it. */
  loseCollection(folder: string): void {
    this.removeBelow(`/${this.name}/${folder}`);
    this.folders.delete(folder);
  }

  /** Resolves after the time that a read takes. */
  read<Value>(value: () => Value): Promise<Value> {
    const life = this.#life;
    return this.world.sleep(this.random.between(0.1, 2), life).then(value);
  }

  /** For whoever uses it now. */
  later(delayMs: number, run: () => void): void {
    this.world.after(delayMs, run, this.#life);
  }

  /** What lies in this folder is gone. */
  removeBelow(path: string): void {
    const isBelow = (name: string) => name === path || name.startsWith(`${path}/`);
    for (const folder of [...this.replicas.keys()]) if (isBelow(folder)) this.replicas.delete(folder);
    for (const file of [...this.files.keys()]) if (isBelow(file)) this.files.delete(file);
  }

  openConsensus(): ConsensusStore {
    return new VirtualConsensusStore(this, this.mistakes);
  }

  #finish(write: PendingWrite): void {
    const at = this.#pending.indexOf(write);
    // A crash has settled it.
    if (at < 0) return;
    this.#pending.splice(at, 1);
    const life = this.#life as Life;
    const error = this.settings.full ? new TroupeError('storage', `the disk is full (${write.name})`) : null;
    if (error === null) write.carryOut();
    else this.#refuse(write, error);
    this.world.post(life, () => write.done(error));
  }

  #refuse(write: PendingWrite, error: TroupeError): void {
    this.tell(`the disk is full: ${write.name} fails`);
    write.failed(error);
  }
}

class VirtualConsensusStore implements ConsensusStore {
  /** A write has failed: neither do those that were asked for before the next `load`. */
  #failed: TroupeError | null = null;
  #failures = 0;

  constructor(
    private readonly disk: VirtualDisk,
    private readonly mistakes: DiskMistakes,
  ) {}

  load(): Promise<StoredConsensus> {
    return this.disk.read(() => {
      this.#failed = null;
      const stored = this.disk.consensus;
      return this.mistakes.forgetsApplied === true ? { ...stored, applied: stored.snapshot?.index ?? 0 } : stored;
    });
  }

  write(write: ConsensusWrite): Promise<void> {
    const failures = this.#failures;
    let refused = this.#failed;
    const carryOut = () => {
      if (failures !== this.#failures) refused ??= LATER_WRITE;
      if (refused === null) this.disk.consensus = afterWrite(this.disk.consensus, write);
    };
    const failed = (error: TroupeError) => {
      this.#failed = error;
      this.#failures += 1;
    };
    const written = this.disk.write('consensus', carryOut, failed).then(() => {
      if (refused !== null) throw refused;
    });
    if (this.mistakes.acknowledgesEarly !== true) return written;
    written.catch(() => {});
    return Promise.resolve();
  }

  close(): Promise<void> {
    return this.disk.write('close', () => {});
  }
}

const LATER_WRITE = new TroupeError('storage', 'an earlier write failed');

/** What is stored after a write: the contract of `ConsensusWrite`. Throws where a caller breaks it. */
export function afterWrite(before: StoredConsensus, write: Partial<ConsensusWrite>): StoredConsensus {
  const { reset, hardState, entries, snapshot, firstIndex, clearEntries, applied, identity } = { ...NO_WRITE, ...write };
  const stored = reset ? NOTHING_STORED : before;
  const kept = clearEntries ? [] : stored.entries;
  const joined = withEntries(kept, entries);
  const left = firstIndex === null ? joined : joined.filter((entry) => entry.index >= firstIndex);
  const result = {
    identity: identity ?? stored.identity,
    hardState: hardState ?? stored.hardState,
    snapshot: snapshot ?? stored.snapshot,
    entries: left,
    applied: Math.max(applied ?? stored.applied, (snapshot ?? stored.snapshot)?.index ?? 0),
  };
  checkStored(stored, result);
  return result;
}

function withEntries(kept: readonly Entry[], entries: readonly Entry[]): readonly Entry[] {
  const first = entries[0];
  if (first === undefined) return kept;
  const before = kept[0] === undefined ? [] : kept.slice(0, Math.max(0, first.index - kept[0].index));
  return [...before, ...entries];
}

function checkStored(before: StoredConsensus, after: StoredConsensus): void {
  const { entries, snapshot, hardState } = after;
  for (let at = 1; at < entries.length; at++) {
    if ((entries[at] as Entry).index !== (entries[at - 1] as Entry).index + 1) throw new Error('a write leaves a gap in the log');
  }
  const end = snapshot?.index ?? 0;
  if (entries[0] !== undefined && entries[0].index > end + 1)
    throw new Error(`the log begins at ${entries[0].index}, the snapshot ends at ${end}`);
  if (hardState.term < before.hardState.term) throw new Error('a write takes the term back');
  if (hardState.term === before.hardState.term && before.hardState.votedFor !== null && hardState.votedFor !== before.hardState.votedFor)
    throw new Error(`a second vote in term ${hardState.term}: for ${hardState.votedFor} after ${before.hardState.votedFor}`);
}

/**
 * The sets of segments that readers have: each set that a writer publishes goes to every reader, and is retired by every reader before its writer
 * may free it.
 */

import { freedBytes, type SegmentSet } from '../segment/handle.js';
import type { Attach, ReplicaKey, Sleeping, ToReader } from '../threads/messages.js';
import { SentSets } from '../threads/sent-sets.js';

/** The readers' threads. */
export interface ReaderThreads {
  /** Those that take messages; a set of its own. */
  indicesUp(): Set<number>;
  post(index: number, message: ToReader): void;
  postAll(message: ToReader): void;
}

export interface HandedSetsEvents {
  /** Every reader has dropped the sets of a replica before `generation`. freed: bytes that a collection frees now. */
  retired(key: ReplicaKey, generation: number, freed: number): void;
  /** Messages that passed through this thread referred to memory that is gone now. freed: bytes that a collection frees. */
  collectSoon(freed?: number): void;
  /** Whether the memories of segments that every reader has dropped are emptied. */
  readonly empties: boolean;
}

interface ReplicaSets {
  /** Sets that readers may need, by generation, oldest first. */
  attaches: Attach[];
  /** Readers that have not answered the retirement below this generation, and how much a collection frees then. */
  readonly retiring: Map<number, { readonly readers: Set<number>; readonly freed: number }>;
  /** Whether readers have dropped sets of an earlier opening since the last retirement. */
  hasOutlived: boolean;
  /** Null while it is awake. */
  sleeping: Sleeping | null;
}

interface Detaching {
  readonly readers: Set<number>;
  readonly done: () => void;
}

export class HandedSets {
  private readonly sets = new Map<ReplicaKey, ReplicaSets>();
  /** By reader: of the port on which it gets sets. */
  private readonly sent = new Map<number, SentSets>();
  private readonly detaching = new Map<ReplicaKey, Detaching>();
  private newSleeping: Sleeping[] = [];
  /** Asleep replicas that are gone, of which readers have not heard. */
  private forgotten: ReplicaKey[] = [];
  private tellingSleeping: NodeJS.Immediate | null = null;

  constructor(
    private readonly threads: ReaderThreads,
    private readonly on: HandedSetsEvents,
  ) {}

  stop(): void {
    if (this.tellingSleeping !== null) clearImmediate(this.tellingSleeping);
  }

  // ---------------------------------------------------------------- replicas

  /** From here on sets of the replica are handed round. */
  add(key: ReplicaKey): void {
    this.sets.set(key, { attaches: [], retiring: new Map(), hasOutlived: false, sleeping: null });
  }

  /** As `add`, of one that is asleep. */
  addSleeping(sleeping: Sleeping): void {
    this.sets.set(sleeping.key, { attaches: [], retiring: new Map(), hasOutlived: false, sleeping });
    // Many are added at a start: readers hear of them together.
    this.newSleeping.push(sleeping);
    this.tellSleepingSoon();
  }

  remove(key: ReplicaKey): void {
    this.sets.delete(key);
  }

  /** Has every reader forget a replica that is asleep. */
  forget(key: ReplicaKey): void {
    // At an orderly end all of them go: readers hear of them together.
    this.forgotten.push(key);
    this.tellSleepingSoon();
  }

  private tellSleepingSoon(): void {
    this.tellingSleeping ??= setImmediate(() => this.tellSleeping());
  }

  private tellSleeping(): void {
    this.stop();
    this.tellingSleeping = null;
    // Before those that have come since, maybe under the same names.
    const keys = this.forgotten.splice(0);
    if (keys.length > 0) this.threads.postAll({ kind: 'forget', keys });
    const replicas = this.newSleeping.splice(0).filter((sleeping) => this.sets.get(sleeping.key)?.sleeping === sleeping);
    if (replicas.length > 0) this.threads.postAll({ kind: 'asleep', replicas });
  }

  // ---------------------------------------------------------------- sets

  /** Hands a set to every reader, now and as others start: before the commit that makes it current (View-V3). */
  attach(attach: Attach): void {
    const sets = this.sets.get(attach.spec.key);
    if (sets === undefined) return;
    if (this.forgotten.length > 0) this.tellSleeping();
    sets.sleeping = null;
    // Sets of an earlier opening have other memories: readers drop them as they get this one.
    const kept = sets.attaches.filter((known) => known.opening === attach.opening && known.set.generation !== attach.set.generation);
    sets.hasOutlived ||= kept.length < sets.attaches.length;
    sets.attaches = [...kept, attach];
    for (const index of this.threads.indicesUp()) this.post(index, attach);
  }

  private post(index: number, attach: Attach): void {
    const sent = this.sent.get(index) ?? new SentSets();
    this.sent.set(index, sent);
    const { opening, set, spec } = attach;
    this.threads.post(index, { ...attach, set: sent.pack({ key: spec.key, opening }, set) });
  }

  /** Has every reader drop the sets before `generation`; `retired` follows when the last one has (View-V4). */
  retireBefore(key: ReplicaKey, generation: number): void {
    const sets = this.sets.get(key);
    if (sets === undefined) return;
    // Nobody empties memories of an earlier opening.
    const outlived = sets.hasOutlived ? Number.POSITIVE_INFINITY : 0;
    const freed = outlived + freedBytes(setsOf(sets, false, generation), setsOf(sets, true, generation), this.on.empties);
    sets.attaches = sets.attaches.filter((attach) => attach.set.generation >= generation);
    sets.hasOutlived = false;
    const readers = this.threads.indicesUp();
    if (readers.size === 0) {
      this.on.retired(key, generation, freed);
      return;
    }
    sets.retiring.set(generation, { readers, freed });
    this.threads.postAll({ kind: 'retire', key, generation, freed });
  }

  /** Its writer is lost: nobody waits for what is being retired. */
  forgetRetiring(key: ReplicaKey): void {
    this.sets.get(key)?.retiring.clear();
  }

  /**
   * Has every reader let go of the replica and its files; resolves when they have. frees: whether memory worth a collection goes with it.
   * sleeps: what readers keep of one that only sleeps.
   */
  detach(key: ReplicaKey, frees: boolean, sleeps: Sleeping | null = null): Promise<void> {
    const readers = this.threads.indicesUp();
    if (frees) this.on.collectSoon();
    const sets = this.sets.get(key);
    if (sets !== undefined) sets.sleeping = sleeps;
    this.tellSleeping();
    // A reader that starts now must not get what is being detached: its memory may be used for something else.
    if (sets !== undefined) sets.attaches = [];
    if (readers.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.detaching.set(key, { readers, done: resolve });
      this.threads.postAll({ kind: 'detach', key, frees, sleeps });
    });
  }

  isDetaching(key: ReplicaKey): boolean {
    return this.detaching.has(key);
  }

  // ---------------------------------------------------------------- what readers say

  /** A reader has started: it gets all that the others have. */
  begin(reader: number): void {
    this.sent.delete(reader);
    for (const { attaches } of this.sets.values()) for (const attach of attaches) this.post(reader, attach);
    this.threads.post(reader, { kind: 'asleep', replicas: [...this.sets.values()].flatMap(({ sleeping }) => sleeping ?? []) });
  }

  /** Its replacement starts with the newest sets only, so it has retired and detached everything (View-V4). */
  lose(reader: number): void {
    for (const [key, { retiring }] of this.sets) for (const generation of [...retiring.keys()]) this.noteRetired(reader, key, generation);
    for (const key of [...this.detaching.keys()]) this.noteDetached(reader, key);
  }

  noteRetired(reader: number, key: ReplicaKey, generation: number): void {
    const sets = this.sets.get(key);
    const waiting = sets?.retiring.get(generation);
    if (sets === undefined || waiting === undefined) return;
    const { freed, readers } = waiting;
    readers.delete(reader);
    if (readers.size > 0) return;
    sets.retiring.delete(generation);
    this.on.retired(key, generation, freed);
    if (freed > 0) this.on.collectSoon(freed);
  }

  noteDetached(reader: number, key: ReplicaKey): void {
    const detaching = this.detaching.get(key);
    if (detaching === undefined) return;
    detaching.readers.delete(reader);
    if (detaching.readers.size > 0) return;
    this.detaching.delete(key);
    detaching.done();
  }
}

/** A replica's sets from a generation on, or those before it. */
function setsOf({ attaches }: ReplicaSets, from: boolean, generation: number): SegmentSet[] {
  return attaches.map(({ set }) => set).filter((set) => set.generation >= generation === from);
}

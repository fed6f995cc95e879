/**
 * Puts replicas to sleep that nobody uses, and wakes them for whoever needs them: so thousands of small collections cost no descriptors, no
 * memory of segments and no start. Whoever calls a replica sees no difference but the milliseconds of a wake-up.
 *
 * A replica moves `awake` → `fallingAsleep` → `asleep` → `waking` → `awake`. Calls that come in between are held, in their order
 * (Sleep-S1).
 */

import { asTroupeError, type TroupeError } from '../../protocols/errors.js';
import type { ReplicaStats } from '../threads/messages.js';
import type { ReplicaUses } from '../threads/replica-uses.js';
import { chooseSleepers, isSmallAndQuiet, type SleepLimits } from './sleep-policy.js';

/** Something that waits until a replica is awake. */
export interface HeldUntilAwake {
  go(): void;
  fail(error: TroupeError): void;
}

/** What becomes asleep and awake. */
export interface Sleeper {
  life: 'awake' | 'fallingAsleep' | 'asleep' | 'waking';
  readonly held: HeldUntilAwake[];
  /** Settled when it is awake or asleep again; never rejects. */
  moving: Promise<void>;
  /** Finds what is damaged in its files. Null: they have been checked since the process began. */
  check: (() => Promise<string | null>) | null;
  /** Of its uses (`ReplicaUses`). */
  readonly place: number;
  /** Calls that its writer has not answered. */
  calls: number;
  /** Its log is kept for a checkpoint. */
  keepsLog: boolean;
  open: boolean;
  stats: ReplicaStats | null;
}

export interface SleeperActs<Replica> {
  /** Opens it on its writer. */
  open(replica: Replica, damaged: string | null): Promise<unknown>;
  /** No thread has anything of it open when it resolves. */
  close(replica: Replica): Promise<void>;
  /** It cannot be woken. */
  fail(replica: Replica, error: TroupeError): void;
}

const TICK_MS = 1000;
/** Replicas that fall asleep in a tick. */
const AT_ONCE_MAX = 200;

export class Sleepers<Replica extends Sleeper> {
  private readonly awake = new Set<Replica>();
  /** With what the log of each counts. */
  private readonly asleep = new Map<Replica, number>();
  /** What the logs of those asleep keep, for the threads that write: Int32Array [1] in shared memory, in KiB. */
  readonly logKilobytes = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  private ticking: NodeJS.Timeout | null = null;
  private nextPlace = 0;
  /** Replicas that are about to be opened. */
  private expected = 0;

  constructor(
    private readonly limits: SleepLimits,
    readonly uses: ReplicaUses,
    private readonly acts: SleeperActs<Replica>,
  ) {}

  /** A place for the uses of a new replica. */
  newPlace(): number {
    return this.nextPlace++;
  }

  /**
   * Whether a replica that nobody has needed yet is to be opened: the first ones are (Sleep-S3). Each that is told so here is expected to be
   * opened.
   */
  opensNext(): boolean {
    if (this.awake.size + this.expected >= this.limits.awakeKept) return false;
    this.expected++;
    return true;
  }

  /** An opening has ended. */
  noteOpening(): void {
    this.expected = Math.max(0, this.expected - 1);
  }

  /** The replica has been opened. */
  noteAwake(replica: Replica): void {
    replica.life = 'awake';
    this.uses.note(replica.place);
    this.awake.add(replica);
    this.watch();
  }

  /** No thread has the replica open, which is there. */
  noteAsleep(replica: Replica): void {
    const kilobytes = Math.ceil((replica.stats?.walBytes ?? 0) / 1024);
    this.removeAsleep(replica);
    this.asleep.set(replica, kilobytes);
    Atomics.add(this.logKilobytes, 0, kilobytes);
    this.awake.delete(replica);
    if (replica.stats !== null) replica.stats = withoutMemory(replica.stats);
    replica.life = 'asleep';
  }

  private removeAsleep(replica: Replica): void {
    Atomics.sub(this.logKilobytes, 0, this.asleep.get(replica) ?? 0);
    this.asleep.delete(replica);
  }

  get asleepCount(): number {
    return this.asleep.size;
  }

  /** The replica is closed, or could not be opened. */
  forget(replica: Replica): void {
    this.awake.delete(replica);
    this.removeAsleep(replica);
  }

  /** Wakes a replica that is not awake; `held` goes on then. */
  hold(replica: Replica, held: HeldUntilAwake): void {
    replica.held.push(held);
    if (replica.life === 'asleep') replica.moving = this.wakeUp(replica);
  }

  /** Waits until the replica is awake or asleep and goes on being so. */
  async settled(replica: Replica): Promise<void> {
    while (replica.life === 'fallingAsleep' || replica.life === 'waking') await replica.moving;
  }

  stop(): void {
    if (this.ticking !== null) clearInterval(this.ticking);
    this.ticking = null;
  }

  private watch(): void {
    if (this.ticking !== null || this.awake.size <= this.limits.awakeKept) return;
    this.ticking = setInterval(() => this.tick(), TICK_MS);
    this.ticking.unref();
  }

  private tick(): void {
    const tick = this.uses.nextTick();
    const candidates = [...this.awake].filter(canSleep);
    const uses = candidates.map(({ place }) => this.uses.lastUse(place));
    for (const at of chooseSleepers(uses, tick, this.limits).slice(0, AT_ONCE_MAX)) {
      const replica = candidates[at] as Replica;
      replica.moving = this.fallAsleep(replica);
    }
    if (this.awake.size <= this.limits.awakeKept) this.stop();
  }

  private async fallAsleep(replica: Replica): Promise<void> {
    replica.life = 'fallingAsleep';
    this.awake.delete(replica);
    // A writer that is lost meanwhile has closed everything.
    await this.acts.close(replica).catch(() => {});
    this.noteAsleep(replica);
    if (replica.held.length > 0) await this.wakeUp(replica);
  }

  private async wakeUp(replica: Replica): Promise<void> {
    replica.life = 'waking';
    this.removeAsleep(replica);
    try {
      const damaged = (await replica.check?.()) ?? null;
      await this.acts.open(replica, damaged);
      replica.check = null;
      this.noteAwake(replica);
      for (const { go } of replica.held.splice(0)) go();
    } catch (cause) {
      const error = asTroupeError(cause);
      await this.acts.close(replica).catch(() => {});
      this.noteAsleep(replica);
      for (const { fail } of replica.held.splice(0)) fail(error);
      // A lost writer is no fault of the replica, which wakes when it is needed again.
      if (error.code !== 'unavailable') this.acts.fail(replica, error);
    }
  }
}

/** Nothing of a replica that is asleep is in memory. */
function withoutMemory(stats: ReplicaStats): ReplicaStats {
  return { ...stats, segments: stats.segments.map((segment) => ({ ...segment, memoryBytes: 0 })) };
}

function canSleep({ calls, keepsLog, open, stats }: Sleeper): boolean {
  return open && calls === 0 && !keepsLog && stats !== null && isSmallAndQuiet(stats);
}

/**
 * Sets of segments on their way from one thread to another. V8 counts a shared memory as taken anew each time a message brings it to a thread,
 * and collects garbage in that thread after each 64 MB: a set of large segments that got one more did so in each thread. So what the receiver has does not
 * go over the port again:
 *
 * - a segment of the set of its replica that came before is named by its number;
 * - of the memories that small segments share (`segment/shared-memory.ts`), the newest of each thread that makes segments goes over a port once, and later
 *   messages name it. Older ones come along again, so that the receiver keeps no memory of segments that are long gone.
 *
 * Sender and receiver remember the same, as messages come in their order: each end of a port has a table of its own. It keeps no segment alive: whoever has a
 * replica open holds its newest set.
 */

import type { SegmentHandle, SegmentSet } from '../segment/handle.js';
import type { CommonMemory } from '../segment/shared-memory.js';
import type { ReplicaKey } from './messages.js';

/** Makers that a table remembers; the one that came first is forgotten first: a thread that was replaced makes nothing any more. */
const MAKERS_MAX = 16;
/** Replicas whose segments are looked through for those that are gone, at least. */
const PURGED_FROM = 256;

/** A segment in a message: its number, if it came with the set before. memory: null for the newest memory of its maker that went over this port. */
export type SentSegment = number | (Omit<SegmentHandle, 'memory'> & { readonly memory: WebAssembly.Memory | null });

export interface SentSet {
  readonly generation: number;
  readonly segments: readonly SentSegment[];
}

/** Whose set it is. opening: as in `ToReader`. */
export interface SetOwner {
  readonly key: ReplicaKey;
  readonly opening: number;
}

interface LastSet {
  readonly opening: number;
  readonly segments: ReadonlyMap<number, WeakRef<SegmentHandle>>;
}

export class SentSets {
  /** By maker: the newest memory that went over the port. */
  private readonly newest = new Map<number, { readonly number: number; readonly memory: WebAssembly.Memory }>();
  private readonly last = new Map<ReplicaKey, LastSet>();
  private purgeFrom = PURGED_FROM;

  /** A set in the form of a message that is sent next. */
  pack(owner: SetOwner, set: SegmentSet): SentSet {
    const before = this.before(owner);
    const segments = set.segments.map((segment): SentSegment => {
      if (before?.get(segment.id)?.deref() === segment) return segment.id;
      return this.isKnown(segment) ? { ...segment, memory: null } : this.noted(segment);
    });
    this.remember(owner, set);
    return { generation: set.generation, segments };
  }

  /** The set of a message that came. Null: the replica was let go of meanwhile, and a segment with it that the message names. */
  unpack(owner: SetOwner, { generation, segments }: SentSet): SegmentSet | null {
    const before = this.before(owner);
    // Those that come along are noted in any case.
    const found = segments.map((segment) => (typeof segment === 'number' ? before?.get(segment)?.deref() : this.whole(segment)));
    const whole = found.filter((segment) => segment !== undefined);
    if (whole.length < found.length) return null;
    const set = { generation, segments: whole };
    this.remember(owner, set);
    return set;
  }

  private before({ key, opening }: SetOwner): LastSet['segments'] | null {
    const last = this.last.get(key);
    return last?.opening === opening ? last.segments : null;
  }

  private remember({ key, opening }: SetOwner, { segments }: SegmentSet): void {
    this.last.set(key, { opening, segments: new Map(segments.map((segment) => [segment.id, new WeakRef(segment)])) });
    if (this.last.size >= this.purgeFrom) this.purge();
  }

  /** Forgets replicas of which nothing is left. */
  private purge(): void {
    for (const [key, { segments }] of this.last) {
      if (![...segments.values()].some((segment) => segment.deref() !== undefined)) this.last.delete(key);
    }
    this.purgeFrom = Math.max(PURGED_FROM, 2 * this.last.size);
  }

  private isKnown({ common }: SegmentHandle): boolean {
    return common !== undefined && this.newest.get(common.thread)?.number === common.number;
  }

  private whole(segment: Exclude<SentSegment, number>): SegmentHandle {
    const { common, memory } = segment;
    if (memory !== null) return this.noted({ ...segment, memory });
    const known = common === undefined ? undefined : this.newest.get(common.thread);
    if (known === undefined || known.number !== common?.number) throw new Error(`segment ${segment.id} comes without its memory`);
    return { ...segment, memory: known.memory };
  }

  /** Remembers the memory of a segment that comes along, if it is the newest of its maker. */
  private noted(segment: SegmentHandle): SegmentHandle {
    if (segment.common !== undefined) this.note(segment.common, segment.memory);
    return segment;
  }

  private note({ thread, number }: CommonMemory, memory: WebAssembly.Memory): void {
    const known = this.newest.get(thread);
    if (known !== undefined && known.number >= number) return;
    this.newest.set(thread, { number, memory });
    if (this.newest.size > MAKERS_MAX) this.newest.delete(this.newest.keys().next().value as number);
  }
}

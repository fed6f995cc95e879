/**
 * Sets of segments on their way from one thread to another. V8 counts a shared memory as taken anew each time a message brings it to a thread,
 * and collects garbage for that: of the memories that small segments share (`segment/shared-memory.ts`), the newest of each thread that makes
 * segments goes over a port once, and later messages name it. Older ones come along again, so that the receiver keeps no memory of segments that
 * are long gone. Sender and receiver remember the same, as messages come in their order: each end of a port has a table of its own.
 */

import type { SegmentHandle, SegmentSet } from '../segment/handle.js';
import type { CommonMemory } from '../segment/shared-memory.js';

/** Makers that a table remembers; the one that came first is forgotten first: a thread that was replaced makes nothing any more. */
const MAKERS_MAX = 16;

/** A segment in a message. memory: null for the newest memory of its maker that went over this port. */
export type SentSegment = Omit<SegmentHandle, 'memory'> & { readonly memory: WebAssembly.Memory | null };

export interface SentSet {
  readonly generation: number;
  readonly segments: readonly SentSegment[];
}

export class CommonMemories {
  /** By maker: the newest memory that went over the port. */
  private readonly newest = new Map<number, { readonly number: number; readonly memory: WebAssembly.Memory }>();

  /** A set in the form of a message that is sent next. */
  pack({ generation, segments }: SegmentSet): SentSet {
    return {
      generation,
      segments: segments.map((segment) => (this.isKnown(segment) ? { ...segment, memory: null } : this.noted(segment))),
    };
  }

  /** The set of a message that came. */
  unpack({ generation, segments }: SentSet): SegmentSet {
    return { generation, segments: segments.map((segment) => this.whole(segment)) };
  }

  private isKnown({ common }: SegmentHandle): boolean {
    return common !== undefined && this.newest.get(common.thread)?.number === common.number;
  }

  private whole(segment: SentSegment): SegmentHandle {
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

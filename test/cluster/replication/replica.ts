/** A replica of tests: its log and points on a disk that keeps what was carried out. An operation: [id, content], 0 deletes. */

import type { DataAnswer } from '../../../cluster/data-messages.js';
import type { Fetched, HeardCall, ReadPart } from '../../../cluster/replication/messages.js';
import { TroupeError } from '../../../protocols/errors.js';
import { isSameTag, type LeaderTag, type LogTag, NO_TAG, type ShardEntry } from '../../../protocols/model/shard-log.js';

export const BUCKETS = 4;

export class TestReplica {
  base: LogTag = NO_TAG;
  log: ShardEntry[] = [];
  /** Index of the operation that wrote each point, and what it wrote: index * 256 + content. Digests take in the index alone. */
  readonly points = new Map<number, number>();

  get last(): LogTag {
    return this.log.at(-1)?.tag ?? this.base;
  }

  write({ indexAfter, peer, term }: LeaderTag, operations: readonly Uint8Array[]): ShardEntry[] {
    if (term < this.last.term) throw new TroupeError('conflict', 'a term that is over');
    return operations.map((operation) => {
      const entry = { tag: { peer, term, index: Math.max(this.last.index, indexAfter) + 1 }, operation };
      this.add(entry);
      return entry;
    });
  }

  append(previous: LogTag, entries: readonly ShardEntry[]): void {
    const first = entries[0]?.tag.term ?? previous.term;
    if (this.last.term > first) throw new TroupeError('conflict', 'a later leader has written here');
    if (previous.index > this.last.index || (previous.index >= this.base.index && !this.has(previous))) {
      throw new TroupeError('conflict', `it has not ${previous.index}@${previous.term}`);
    }
    const added = entries.filter(({ tag }) => tag.index > this.base.index && !this.has(tag));
    const [next] = added;
    if (next === undefined) return;
    const before = entries[entries.indexOf(next) - 1]?.tag ?? previous;
    if (!isSameTag(before, this.last) && this.last.index > before.index) throw new TroupeError('conflict', 'its log goes on otherwise');
    for (const entry of added) this.add(entry);
  }

  after(after: LogTag): ReadPart {
    if (after.index < this.base.index) return { kind: 'compacted' };
    if (!this.has(after)) return { kind: 'diverged', before: this.before(after.index) };
    return { kind: 'entries', entries: this.log.filter(({ tag }) => tag.index > after.index).slice(0, 3) };
  }

  private before(index: number): LogTag | null {
    const before = this.log.findLast(({ tag }) => tag.index < index)?.tag;
    return before ?? (this.base.index < index ? this.base : null);
  }

  has(tag: LogTag): boolean {
    return isSameTag(tag, this.base) || this.log.some((entry) => isSameTag(entry.tag, tag));
  }

  /** The oldest operations are left out of the log. */
  compact(count: number): void {
    const gone = this.log.splice(0, Math.min(count, this.log.length));
    this.base = gone.at(-1)?.tag ?? this.base;
  }

  carryOut(call: HeardCall): DataAnswer {
    switch (call.kind) {
      case 'append':
        this.append(call.previous, call.entries);
        return { kind: 'done', changed: 0 };
      case 'position':
        return { kind: 'position', last: this.last, base: this.base };
      case 'entriesAfter': {
        const part = this.after(call.after);
        return part.kind === 'entries' ? { ...part, last: this.last } : part;
      }
      case 'resetLog':
        this.base = call.at;
        this.log = [];
        return { kind: 'done', changed: 0 };
      case 'rewindLog':
        if (!this.has(call.to)) throw new TroupeError('conflict', 'its log has no such operation');
        this.log = this.log.filter(({ tag }) => tag.index <= call.to.index);
        return { kind: 'done', changed: 0 };
      case 'digest':
        return this.fetch({ kind: 'digest' }) as DataAnswer;
      case 'replaceBuckets':
        return { kind: 'done', changed: this.replace(call.bytes) };
      case 'applySettings':
        return { kind: 'done', changed: 0 };
      default:
        return call satisfies never;
    }
  }

  fetch(fetch: { readonly kind: 'settings' | 'digest' } | { readonly kind: 'buckets'; readonly buckets: readonly number[] }): Fetched {
    if (fetch.kind === 'settings') return { kind: 'settings', operations: [] };
    const at = this.last;
    if (fetch.kind === 'buckets') {
      const points = [...this.points].filter(([id]) => fetch.buckets.includes(id % BUCKETS));
      return { kind: 'buckets', at, points: points.length, bytes: bytesOf({ at, buckets: fetch.buckets, points }) };
    }
    const buckets = new BigUint64Array(BUCKETS);
    const points = new Uint32Array(BUCKETS);
    for (const [id, value] of this.points) {
      const index = Math.floor(value / 256);
      buckets[id % BUCKETS] = ((buckets[id % BUCKETS] as bigint) + BigInt(id * 7919 + index * 104729)) & 0xffff_ffffn;
      points[id % BUCKETS] = (points[id % BUCKETS] as number) + 1;
    }
    return { kind: 'digest', at, buckets, points };
  }

  private replace(bytes: Uint8Array): number {
    const { at, buckets, points } = JSON.parse(Buffer.from(bytes).toString()) as {
      at: LogTag;
      buckets: number[];
      points: [number, number][];
    };
    if (!isSameTag(at, this.last)) throw new TroupeError('conflict', 'its log is elsewhere');
    for (const id of [...this.points.keys()]) if (buckets.includes(id % BUCKETS)) this.points.delete(id);
    for (const [id, value] of points) this.points.set(id, value);
    return points.length;
  }

  private add(entry: ShardEntry): void {
    this.log.push(entry);
    const id = entry.operation[0] as number;
    if (entry.operation[1] === 0) this.points.delete(id);
    else this.points.set(id, entry.tag.index * 256 + (entry.operation[1] as number));
  }
}

function bytesOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

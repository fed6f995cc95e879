/**
 * Bitsets of filters already evaluated. Rows never change, so a bitset for rows 0..n-1 stays right while a segment grows;
 * only the rows behind n need work the next time. The least recently used go first when the bound is reached.
 */

export interface CachedBits {
  /** Rows that were decided: 0..rows-1. */
  readonly rows: number;
  readonly bits: Uint32Array;
}

/** What evaluation needs of a cache: the part that belongs to one segment. */
export interface ConditionCache {
  get(key: string): CachedBits | undefined;
  set(key: string, entry: CachedBits): void;
  /** A whole filter was looked for. known: for some of the rows at least. */
  asked(known: boolean): void;
}

/** Hears what a cache does for each owner of bitsets. */
export interface CacheListener {
  /** The owner's bitsets take so many bytes more, or less. */
  grew(owner: string, bytes: number): void;
  asked(owner: string, known: boolean): void;
}

interface Entry extends CachedBits {
  readonly owner: string;
}

const ENTRY_OVERHEAD_BYTES = 200;

export class FilterCache {
  private readonly entries = new Map<string, Entry>();
  private bytes = 0;

  /** tell: is told of its size whenever that changes. */
  constructor(
    private readonly bytesMax: number,
    private readonly tell: (bytes: number) => void = () => {},
    private readonly listener: CacheListener | null = null,
  ) {}

  /** The part of one segment. `scope` must name the segment uniquely in this process: `<replica>/<segment id>`. owner: for whom it is counted. */
  scope(scope: string, owner = scope): ConditionCache {
    const prefix = `${scope}\n`;
    return {
      get: (key) => this.get(prefix + key),
      set: (key, { bits, rows }) => this.set(prefix + key, { bits, owner, rows }),
      asked: (known) => this.listener?.asked(owner, known),
    };
  }

  /** Forgets a segment. */
  drop(scope: string): void {
    const prefix = `${scope}\n`;
    for (const key of [...this.entries.keys()]) if (key.startsWith(prefix)) this.remove(key);
    this.tell(this.bytes);
  }

  get sizeBytes(): number {
    return this.bytes;
  }

  get size(): number {
    return this.entries.size;
  }

  private get(key: string): Entry | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    // A map keeps the order of insertion: the first key is the least recently used one.
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry;
  }

  private set(key: string, entry: Entry): void {
    this.remove(key);
    const bytes = bytesOf(key, entry);
    if (bytes > this.bytesMax) return;
    this.entries.set(key, entry);
    this.bytes += bytes;
    this.listener?.grew(entry.owner, bytes);
    for (const oldest of this.entries.keys()) {
      if (this.bytes <= this.bytesMax) break;
      this.remove(oldest);
    }
    this.tell(this.bytes);
  }

  private remove(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.entries.delete(key);
    const bytes = bytesOf(key, entry);
    this.bytes -= bytes;
    this.listener?.grew(entry.owner, -bytes);
  }
}

function bytesOf(key: string, entry: CachedBits): number {
  return entry.bits.byteLength + key.length * 2 + ENTRY_OVERHEAD_BYTES;
}

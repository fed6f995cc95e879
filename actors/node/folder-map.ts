/**
 * A map by folder name that never changes: `with` and `without` give another one, which shares nearly everything with it. The node changes the
 * phase of one collection with each message, and copying a map of all of them each time made a start and a stop grow with their square:
 * 0.25 ms a message with 5,000 collections.
 */

type Entry<Value> = readonly [folder: string, value: Value];
type Bucket<Value> = readonly Entry<Value>[];

/** A change copies the list of buckets and one bucket. */
const BUCKETS = 256;
const NO_ENTRIES: readonly never[] = [];
const NO_BUCKETS: readonly (readonly never[])[] = Array.from({ length: BUCKETS }, () => NO_ENTRIES);

export class FolderMap<Value> implements Iterable<Entry<Value>> {
  private constructor(
    private readonly buckets: readonly Bucket<Value>[],
    readonly size: number,
  ) {}

  static of<Value>(entries: Iterable<Entry<Value>>): FolderMap<Value> {
    if (entries instanceof FolderMap) return entries;
    const buckets = Array.from({ length: BUCKETS }, (): Entry<Value>[] => []);
    const unique = new Map(entries);
    for (const entry of unique) (buckets[bucketOf(entry[0])] as Entry<Value>[]).push(entry);
    return new FolderMap(
      buckets.map((bucket, at) => (bucket.length === 0 ? (NO_BUCKETS[at] as readonly never[]) : bucket)),
      unique.size,
    );
  }

  get(folder: string): Value | undefined {
    return this.bucket(folder).find(([known]) => known === folder)?.[1];
  }

  has(folder: string): boolean {
    return this.bucket(folder).some(([known]) => known === folder);
  }

  with(folder: string, value: Value): FolderMap<Value> {
    const bucket = this.bucket(folder);
    const others = bucket.filter(([known]) => known !== folder);
    return this.replaced(folder, [...others, [folder, value]], this.size + 1 + others.length - bucket.length);
  }

  /** The very same if the folder is not in it. */
  without(folder: string): FolderMap<Value> {
    if (!this.has(folder)) return this;
    return this.replaced(
      folder,
      this.bucket(folder).filter(([known]) => known !== folder),
      this.size - 1,
    );
  }

  /** In no order. */
  *[Symbol.iterator](): Generator<Entry<Value>> {
    for (const bucket of this.buckets) yield* bucket;
  }

  *keys(): Generator<string> {
    for (const [folder] of this) yield folder;
  }

  *values(): Generator<Value> {
    for (const [, value] of this) yield value;
  }

  private bucket(folder: string): Bucket<Value> {
    return this.buckets[bucketOf(folder)] as Bucket<Value>;
  }

  private replaced(folder: string, bucket: Bucket<Value>, size: number): FolderMap<Value> {
    const buckets = this.buckets.slice();
    buckets[bucketOf(folder)] = bucket;
    return new FolderMap(buckets, size);
  }
}

/** FNV-1a, of 32 bits. */
function bucketOf(folder: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < folder.length; at++) hash = Math.imul(hash ^ folder.charCodeAt(at), 0x01000193);
  return (hash ^ (hash >>> 16)) & (BUCKETS - 1);
}

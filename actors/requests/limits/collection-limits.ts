/** What a collection in strict mode allows, with the facts that its limits are judged by, as this node knows them. */

import type { ShardFigures } from '../../../cluster/data-messages.js';
import type { FieldSchema, StrictModeConfig } from '../../../protocols/model/collection.js';
import type { RequestLimits, StoredFigures } from '../../../protocols/model/limits.js';
import { TAKES_ROOM, type WriteOperation } from '../../../protocols/model/update.js';
import { newTokens, type SharedTokens } from '../../../storage/limits/tokens.js';
import type { ReplicaKey, ReplicaStats } from '../../../storage/threads/messages.js';
import type { NodeUsage } from '../../context/node-usage.js';
import type { CollectionEntry } from '../../context/view.js';
import type { Clock, EnginePort } from '../../runtime/ports.js';
import type { Found } from '../collection-names.js';

export interface LimitParts {
  readonly engine: Pick<EnginePort, 'stats'>;
  readonly usage: NodeUsage;
  /** Figures of one replica of each shard, on any node; null: all shards are on this one. */
  readonly figures: ((found: Found) => Promise<readonly ShardFigures[]>) | null;
  readonly clock: Clock;
}

/** How long figures of other nodes are taken for those of now. */
const FIGURES_AGE_MS = 1000;

type Sizes = Pick<StoredFigures, 'points' | 'vectorBytes' | 'payloadBytes'>;

export class CollectionLimits {
  readonly #tokens = new WeakMap<object, { read: SharedTokens | null; write: SharedTokens | null }>();
  readonly #sizes = new WeakMap<object, { readonly atMs: number; readonly sizes: Promise<Sizes> }>();

  constructor(private readonly parts: LimitParts) {}

  /** The limits of a read; null: none. Of a collection without a replica here, other nodes are asked for its indexes. */
  ofRead(found: Found): RequestLimits | null | Promise<RequestLimits> {
    const strict = strictModeOf(found);
    if (strict === null) return null;
    if (strict.unindexed_filtering_retrieve !== false) return { strict, indexes: null };
    const indexes = this.indexesHere(found.entry);
    return indexes === null ? this.#indexesElsewhere(found).then((known) => ({ strict, indexes: known })) : { strict, indexes };
  }

  /** The limits of a write; null: none. */
  ofWrite(found: Found, operation: WriteOperation): RequestLimits | null | Promise<RequestLimits> {
    const strict = strictModeOf(found);
    if (strict === null) return null;
    const wantsIndexes = operation === 'createFieldIndex' ? strict.max_payload_index_count : strict.unindexed_filtering_update === false;
    const wantsSizes = TAKES_ROOM[operation] && SIZES.some((limit) => strict[limit] !== undefined);
    const wantsUsage = strict.max_resident_memory_percent !== undefined || strict.max_disk_usage_percent !== undefined;
    if (wantsIndexes !== undefined && wantsIndexes !== false) return this.#withFacts(found, strict, true, wantsSizes, wantsUsage);
    return wantsSizes || wantsUsage ? this.#withFacts(found, strict, false, wantsSizes, wantsUsage) : { strict, indexes: null };
  }

  /** The bucket that limits the rate of requests of a collection on this node; null: nothing does. A changed limit begins with a full one. */
  tokensOf({ entry, record }: Pick<Found, 'entry' | 'record'>, kind: 'read' | 'write'): SharedTokens | null {
    const strict = strictModeOf({ entry, record });
    const perMinute = kind === 'read' ? strict?.read_rate_limit : strict?.write_rate_limit;
    if (entry === null || perMinute === undefined) return null;
    const known = this.#tokens.get(entry) ?? { read: null, write: null };
    this.#tokens.set(entry, known);
    const bucket = known[kind];
    if (bucket?.perMinute === perMinute) return bucket;
    const made = newTokens(kind, perMinute);
    known[kind] = made;
    return made;
  }

  /** The payload indexes of a collection, as a replica on this node has them; null: there is none. */
  indexesHere(entry: CollectionEntry | null): ReadonlyMap<string, FieldSchema> | null {
    for (const { key } of entry?.replicas.values() ?? []) {
      const stats = this.parts.engine.stats(key);
      if (stats !== null) return stats.fields;
    }
    return null;
  }

  async #withFacts(
    found: Found,
    strict: StrictModeConfig,
    wantsIndexes: boolean,
    wantsSizes: boolean,
    wantsUsage: boolean,
  ): Promise<RequestLimits> {
    const indexes = wantsIndexes ? (this.indexesHere(found.entry) ?? (await this.#indexesElsewhere(found))) : null;
    if (!wantsSizes && !wantsUsage) return { strict, indexes };
    const sizes = wantsSizes ? await this.#sizesOf(found) : NO_SIZES;
    const usage = wantsUsage ? this.parts.usage() : { memoryPercent: null, diskPercent: null };
    return { strict, indexes, stored: { ...sizes, ...usage } };
  }

  async #indexesElsewhere(found: Found): Promise<ReadonlyMap<string, FieldSchema>> {
    const figures = (await this.parts.figures?.(found)) ?? [];
    const agreed = found.record?.payloadIndexes ?? [];
    return new Map([...agreed, ...figures.flatMap(({ fields }) => fields.map(({ field, schema }) => [field, schema] as const))]);
  }

  #sizesOf(found: Found): Sizes | Promise<Sizes> {
    const { clock, engine, figures } = this.parts;
    const { entry } = found;
    if (figures === null || entry === null) {
      const stats = [...(entry?.replicas.values() ?? [])].flatMap(({ key }) => engine.stats(key) ?? []);
      return sumOf(stats.map(sizesOf));
    }
    const known = this.#sizes.get(entry);
    if (known !== undefined && clock.nowMs() - known.atMs < FIGURES_AGE_MS) return known.sizes;
    const sizes = figures(found).then((all) =>
      sumOf(all.map(({ payloadBytes = 0, points, vectorBytes = 0 }) => ({ points, vectorBytes, payloadBytes }))),
    );
    this.#sizes.set(entry, { atMs: clock.nowMs(), sizes });
    return sizes;
  }
}

/** Limits that are judged by what is stored. */
const SIZES = ['max_points_count', 'max_collection_vector_size_bytes', 'max_collection_payload_size_bytes'] as const;
const NO_SIZES: Sizes = { points: 0, vectorBytes: 0, payloadBytes: 0 };

/** The limits of a collection; null: it is not in strict mode. */
export function strictModeOf({ entry, record }: Pick<Found, 'entry' | 'record'>): StrictModeConfig | null {
  const strict = (record?.config ?? entry?.config)?.strict_mode_config;
  return strict?.enabled === true ? strict : null;
}

/** What the points of a replica take that are there: what a segment has of deleted ones is given back by its optimizer. */
export function sizesOf({ deferredPoints, points, segments }: Pick<ReplicaStats, 'deferredPoints' | 'points' | 'segments'>): Sizes {
  // A replica that sleeps since an earlier release doesn't know its payloads.
  const live = segments.map(({ deleted, payloadBytes, rows, vectorBytes }) => {
    const share = rows === 0 ? 0 : (rows - deleted) / rows;
    return { points: 0, vectorBytes: vectorBytes * share, payloadBytes: (payloadBytes ?? 0) * share };
  });
  return { ...sumOf(live), points: points + deferredPoints };
}

function sumOf(sizes: readonly Sizes[]): Sizes {
  const sum = (of: (each: Sizes) => number) => sizes.reduce((total, each) => total + of(each), 0);
  return {
    points: sum(({ points }) => points),
    vectorBytes: sum((each) => each.vectorBytes),
    payloadBytes: sum((each) => each.payloadBytes),
  };
}

/** Tells of collections whose payload indexes change. */
export class IndexChanges {
  readonly #known = new Map<ReplicaKey, string>();

  /** isJudged: whether requests of a collection are judged by its indexes; others are not looked at. tell: gets its name. */
  constructor(
    private readonly isJudged: (collection: string) => boolean,
    private readonly tell: (collection: string) => void,
  ) {}

  look({ fields, key }: Pick<ReplicaStats, 'fields' | 'key'>): void {
    const collection = key.slice(0, key.lastIndexOf('/'));
    if (!this.isJudged(collection)) {
      this.#known.delete(key);
      return;
    }
    const shown = JSON.stringify([...fields]);
    if (shown === this.#known.get(key)) return;
    this.#known.set(key, shown);
    this.tell(collection);
  }
}

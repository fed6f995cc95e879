/**
 * What the main thread and its engine workers say to each other. Readers answer queries, writers (home workers)
 * own the writes of their replicas, builders make segments. Bytes of requests and answers pass through unread.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import type { KeyedShard, ReadConsistency, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig, CollectionParams, FieldSchema } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import type { WriteOperation } from '../../protocols/model/update.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { SegmentHandle, SegmentSet } from '../segment/handle.js';
import type { SubgraphSetting } from '../segment/layout.js';
import type { OrderedWrite, ReplicaDigest, ShardPosition } from './shard-log.js';

/** `<collection>/<shard id>`: names a local replica in this process. */
export type ReplicaKey = string;

/** By collection: shards with keys. */
export type ShardKeyMap = ReadonlyMap<string, readonly KeyedShard[]>;

/** Everything a worker needs to know of a replica besides its segments. */
export interface ReplicaSpec {
  readonly key: ReplicaKey;
  /** Holds `lmdb/` and `segments/`. */
  readonly folder: string;
  readonly config: CollectionConfig;
  /** Readers of this process; a segment's memory has this many scratch slots, one for the home worker and one for the builder. */
  readonly readers: number;
}

export type ReadOperation =
  | 'retrieve'
  | 'getPoint'
  | 'scroll'
  | 'count'
  | 'query'
  | 'queryBatch'
  | 'queryGroups'
  | 'search'
  | 'searchBatch'
  | 'searchGroups'
  | 'recommend'
  | 'recommendBatch'
  | 'recommendGroups'
  | 'discover'
  | 'discoverBatch'
  | 'facet'
  | 'matrixPairs'
  | 'matrixOffsets';

export type { WriteOperation };

/** A request as the door took it. */
export interface RawRequest {
  /** Parameters of the matched route, decoded: `id`, `field_name`… */
  readonly path: Readonly<Record<string, string>>;
  /** Query parameters: `wait`, `timeout`, `ordering`, `consistency`. */
  readonly query: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  /** Full name of the gRPC message that the body is, and that is answered to. Absent: both are JSON. */
  readonly message?: string;
  /** `Date.now()` at which the work stops with `timeout`. */
  readonly deadlineMs: number;
  /** Present: the work is measured, and what it cost stands here when it is answered. */
  readonly usage?: HardwareUsage;
  /** Of a read in a cluster; absent: one replica of each shard will do. */
  readonly consistency?: ReadConsistency;
  /** Of a read in a cluster: points of other collections may be elsewhere: refused with reason `otherCollection`. */
  readonly localOnly?: true;
  /** Of a read while shards are resharded: the ring in force. Rows that it gives to another shard than the one that has them do not count. */
  readonly ring?: readonly ShardId[];
}

// ------------------------------------------------------------------ writes over several shards

/** A write request and the shards that it is to be split by. */
export interface SplitJob {
  readonly operation: WriteOperation;
  readonly request: RawRequest;
  readonly params: CollectionParams;
  /** All shards of the collection, also those elsewhere. */
  readonly shards: readonly ShardId[];
  /** The same with their keys; left out: they have none. */
  readonly keyed?: readonly KeyedShard[];
  readonly wait: boolean;
}

/** A request whose weight is asked for (`weigh.ts`). params: of the collection that is written to. */
export type WeighJob =
  | { readonly kind: 'read'; readonly operation: ReadOperation; readonly request: RawRequest }
  | { readonly kind: 'write'; readonly operation: WriteOperation; readonly request: RawRequest; readonly params: CollectionParams };

/** A write request, decoded and checked, as each shard gets it. */
export interface SplitWrite {
  readonly stages: readonly WriteStage[];
  /** As in `DecodedUpdate`. */
  readonly parts: readonly number[];
  readonly listed: boolean;
  readonly failure: ErrorFacts | null;
}

/** See `sharding/stages.ts`. */
export interface WriteStage {
  readonly needed: readonly { readonly shardId: ShardId; readonly ids: readonly PointId[] }[];
  readonly parts: readonly EncodedPart[];
}

/** What a shard gets. */
export interface EncodedPart {
  readonly shardId: ShardId;
  /** Which operation of the request each one is a part of. */
  readonly at: readonly number[];
  /** Each as `encodeOperation` makes it, at the start of memory of its own. */
  readonly operations: readonly Uint8Array[];
}

/** Operations for one replica, encoded, that were one request or a part of one: none behind one that fails is carried out. */
export interface EncodedWrite {
  readonly operations: readonly Uint8Array[];
  /** When it is answered: it is on disk; it is applied; reads see it, too. */
  readonly until: 'logged' | 'applied' | 'shown';
  /** `Date.now()` at which it is not begun any more. */
  readonly deadlineMs: number;
  /** Present: what it cost is added to it. */
  readonly usage?: HardwareUsage;
}

/** The answer to a portion of a read. */
export interface PortionResult {
  /** See `portion/messages.ts`. */
  readonly body: Uint8Array;
  /** Of each replica: number of the last operation that the answer takes in. */
  readonly positions: readonly number[];
}

// ------------------------------------------------------------------ readers

export type ToReader =
  /** A replica's newest set of segments. Older sets stay until `retire`. */
  | {
      readonly kind: 'attach';
      readonly spec: ReplicaSpec;
      readonly openCommit: number;
      readonly fields: ReadonlyMap<string, FieldSchema>;
      readonly set: SegmentSet;
    }
  /** Drop sets older than `generation`; answered by `retired`. */
  | { readonly kind: 'retire'; readonly key: ReplicaKey; readonly generation: number }
  /** Forget the replica and close its files; answered by `detached`. */
  | { readonly kind: 'detach'; readonly key: ReplicaKey }
  /** Names beside those of the collections, for lookups in other ones. */
  | { readonly kind: 'aliases'; readonly aliases: AliasMap }
  /** Shards of all collections that have keys for them, also those elsewhere. */
  | { readonly kind: 'shardKeys'; readonly shards: ShardKeyMap }
  | {
      readonly kind: 'read';
      readonly id: number;
      readonly operation: ReadOperation;
      readonly replicas: readonly ReplicaKey[];
      readonly request: RawRequest;
    }
  /** A part of a distributed read (`portion/`): `request.body` is all that it has. Answered like a read. */
  | { readonly kind: 'portion'; readonly id: number; readonly replicas: readonly ReplicaKey[]; readonly request: RawRequest }
  /** Answered by `split` or `error`. */
  | { readonly kind: 'split'; readonly id: number; readonly job: SplitJob }
  /** Answered by `weighed` or `error`. */
  | { readonly kind: 'weigh'; readonly id: number; readonly job: WeighJob };

export type FromReader =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'answer';
      readonly id: number;
      readonly body: Uint8Array;
      readonly usage: HardwareUsage | null;
      /** Of a portion: see `PortionResult`. */
      readonly positions?: readonly number[];
    }
  | { readonly kind: 'split'; readonly id: number; readonly write: SplitWrite }
  | { readonly kind: 'weighed'; readonly id: number; readonly weight: number }
  | { readonly kind: 'error'; readonly id: number; readonly error: ErrorFacts }
  | { readonly kind: 'retired'; readonly key: ReplicaKey; readonly generation: number }
  | { readonly kind: 'detached'; readonly key: ReplicaKey };

/** Data a reader's thread starts with. */
export interface ReaderData {
  /** 0..readers-1: which scratch slot of every segment is this reader's. */
  readonly index: number;
}

// ------------------------------------------------------------------ writers

export type ToWriter =
  | { readonly kind: 'open'; readonly id: number; readonly spec: ReplicaSpec; readonly damaged: string | null }
  | { readonly kind: 'configure'; readonly id: number; readonly key: ReplicaKey; readonly config: CollectionConfig }
  | { readonly kind: 'close'; readonly id: number; readonly key: ReplicaKey }
  | {
      readonly kind: 'write';
      readonly id: number;
      readonly operation: WriteOperation;
      readonly key: ReplicaKey;
      readonly wait: boolean;
      readonly request: RawRequest;
    }
  /** Answered by a `Written`. */
  | { readonly kind: 'writeEncoded'; readonly id: number; readonly key: ReplicaKey; readonly write: EncodedWrite }
  | ToShardLog
  /** Answered by the first of these points that is not there after all writes before, or null. */
  | { readonly kind: 'missing'; readonly id: number; readonly key: ReplicaKey; readonly ids: readonly PointId[] }
  /** Freeze the named segments as sources of a build; answered by a `BuildSources`. */
  | { readonly kind: 'beginBuild'; readonly id: number; readonly key: ReplicaKey; readonly segments: readonly number[] }
  | { readonly kind: 'publishBuild'; readonly id: number; readonly key: ReplicaKey; readonly result: BuildResult }
  | { readonly kind: 'abandonBuild'; readonly id: number; readonly key: ReplicaKey; readonly segments: readonly number[] }
  /** All readers have dropped the sets before `generation`; what only they used may go. */
  | { readonly kind: 'retired'; readonly key: ReplicaKey; readonly generation: number };

/** What `ShardLogPort` asks for, and how it is answered. */
export type ToShardLog =
  /** By an `OrderedTags`. */
  | { readonly kind: 'writeOrdered'; readonly id: number; readonly key: ReplicaKey; readonly write: OrderedWrite }
  /** By a `LogTag`. */
  | {
      readonly kind: 'append';
      readonly id: number;
      readonly key: ReplicaKey;
      readonly previous: LogTag;
      readonly entries: readonly ShardEntry[];
      readonly until: 'logged' | 'applied';
    }
  /** By a `ShardPosition`. */
  | { readonly kind: 'position'; readonly id: number; readonly key: ReplicaKey }
  /** By a `LogPart`. */
  | { readonly kind: 'entriesAfter'; readonly id: number; readonly key: ReplicaKey; readonly after: LogTag; readonly bytesMax: number }
  | { readonly kind: 'resetLog'; readonly id: number; readonly key: ReplicaKey; readonly at: LogTag }
  | { readonly kind: 'rewindLog'; readonly id: number; readonly key: ReplicaKey; readonly to: LogTag }
  /** By a `ReplicaDigest`. */
  | { readonly kind: 'digest'; readonly id: number; readonly key: ReplicaKey; readonly leaders: ReplicaDigest | null }
  /** By a `BucketPoints`. */
  | { readonly kind: 'bucketPoints'; readonly id: number; readonly key: ReplicaKey; readonly buckets: readonly number[] }
  /** By how many points are others now. */
  | { readonly kind: 'replaceBuckets'; readonly id: number; readonly key: ReplicaKey; readonly bytes: Uint8Array }
  /** By encoded operations. */
  | { readonly kind: 'settings'; readonly id: number; readonly key: ReplicaKey }
  | { readonly kind: 'applySettings'; readonly id: number; readonly key: ReplicaKey; readonly operations: readonly Uint8Array[] }
  /** By a `ReplicaCheckpoint`, later than what was asked for after it. */
  | { readonly kind: 'checkpoint'; readonly id: number; readonly key: ReplicaKey; readonly folder: string }
  | { readonly kind: 'releaseCheckpoint'; readonly id: number; readonly key: ReplicaKey };

/** What became of an `OrderedWrite`: who asked has the operations. */
export interface OrderedTags {
  readonly tags: readonly LogTag[];
  /** How many of the operations are in the log; `NOTHING` is in the place of the others. */
  readonly carriedOut: number;
  readonly failure: ErrorFacts | null;
}

export type FromWriter =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'answer';
      readonly id: number;
      readonly body: Uint8Array | null;
      readonly value?: unknown;
      readonly usage?: HardwareUsage | null;
      readonly stats: ReplicaStats | null;
    }
  | { readonly kind: 'error'; readonly id: number; readonly error: ErrorFacts; readonly stats: ReplicaStats | null }
  /** A new set: posted before the commit that makes it current, so readers may have to wait for it, never for its rows. */
  | {
      readonly kind: 'publish';
      readonly spec: ReplicaSpec;
      readonly openCommit: number;
      readonly fields: ReadonlyMap<string, FieldSchema>;
      readonly set: SegmentSet;
    }
  /** The set of `generation` is committed; older ones can be retired. */
  | { readonly kind: 'published'; readonly key: ReplicaKey; readonly generation: number }
  /** State of a replica after commits that no answer reported (writes that did not wait). */
  | { readonly kind: 'stats'; readonly stats: ReplicaStats }
  /** The replica cannot go on (its files are damaged, its disk refuses): its actor becomes Dead. */
  | { readonly kind: 'failed'; readonly key: ReplicaKey; readonly error: ErrorFacts };

export interface GraphStats {
  /** The vector's name. */
  readonly name: string;
  readonly m: number;
  readonly efConstruct: number;
  /** Left out: none were asked for. */
  readonly subgraphs?: SubgraphSetting;
}

export interface SegmentStats {
  readonly id: number;
  readonly kind: 'appendable' | 'sealed';
  readonly rows: number;
  readonly deleted: number;
  /** Bytes of the original vectors of all rows. */
  readonly vectorBytes: number;
  /** Takes no more rows: source of a build, or full. */
  readonly frozen: boolean;
  /** Its rows are seen by no read before a build has taken them (`prevent_unoptimized`). */
  readonly deferred: boolean;
  /** Source of a build that runs. */
  readonly building: boolean;
  /** What the graphs of each vector that has some were built with. m: 0 where it has sub-graphs only. */
  readonly graphs: readonly GraphStats[];
  /** The quantization each vector's codes were made by, as text, by the vector's name; others have none. Empty for appendable segments. */
  readonly quantized: readonly { readonly name: string; readonly setting: string }[];
  /** Live rows × vectors with a graph or an inverted index. */
  readonly indexedVectors: number;
  /** Payload fields that have a schema but no index file here yet. */
  readonly missingFields: readonly string[];
  /** Files that failed their checksum and can be built again (graph, codes, inverted index, field index). */
  readonly damagedFiles: readonly string[];
}

export interface ReplicaStats {
  readonly key: ReplicaKey;
  /** That reads see. */
  readonly points: number;
  /** Points whose newest row reads do not see yet. */
  readonly deferredPoints: number;
  /** Whether there may be some (`prevent_unoptimized`). */
  readonly defers: boolean;
  readonly segments: readonly SegmentStats[];
  readonly fields: ReadonlyMap<string, FieldSchema>;
  /** Points that reads see with a value in each indexed field. */
  readonly fieldPoints: ReadonlyMap<string, number>;
  readonly appliedOperation: number;
  /** Operations in the WAL that are not applied yet. */
  readonly queuedOperations: number;
  readonly commits: number;
  readonly walBytes: number;
  /** `Date.now()` of the last applied write, 0 for none. */
  readonly lastWriteMs: number;
  readonly position: ShardPosition;
  /** Cost of measured writes that were applied after their answer. */
  readonly unansweredUsage?: HardwareUsage;
}

// ------------------------------------------------------------------ builders

/** Answer to `beginBuild`: sources frozen as of `commit`. */
export interface BuildSources {
  readonly spec: ReplicaSpec;
  readonly openCommit: number;
  /** Commit sequence the sources are read at: rows deleted later are carried over at publication. */
  readonly seq: number;
  /** Rows of each source at `seq`, aligned with `sources`. */
  readonly rows: readonly number[];
  readonly sources: readonly SegmentHandle[];
  readonly fields: ReadonlyMap<string, FieldSchema>;
  /** Id of the segment to make. */
  readonly segmentId: number;
}

export interface BuildJob extends BuildSources {
  /**
   * - `segment`: one new sealed segment from all sources (indexing, merge, vacuum, repair of codes and graph);
   * - `fieldIndex`: index files for `missingFields` of the one sealed source, which stays.
   */
  readonly plan: 'segment' | 'fieldIndex';
  readonly missingFields: readonly string[];
  /** Whether vectors get graphs. */
  readonly withGraph: boolean;
  readonly threads: number;
  /** OS priority of the builder's threads, 0 (normal) to 19 (lowest). */
  readonly niceness: number;
}

export interface BuildResult {
  readonly plan: 'segment' | 'fieldIndex';
  readonly sources: readonly number[];
  readonly handle: SegmentHandle;
  /** For each source: u32 [rows]: the new row of a source row, 0xffffffff where it was not taken. */
  readonly rowMaps: readonly SharedArrayBuffer[];
  readonly seq: number;
  readonly report: BuildReport;
}

/** How a build went, for telemetry and logs. */
export interface BuildReport {
  readonly rows: number;
  readonly milliseconds: number;
  /** Per vector name: the element type the graph was built in and the recall measured on a sample. */
  readonly graphs: readonly {
    readonly name: string;
    readonly element: 'i8' | 'f16' | 'f32';
    readonly recall: number;
    readonly milliseconds: number;
    /** Of sub-graphs: how many; the element is that of the last, the recall the lowest. Left out: one graph over all rows. */
    readonly values?: number;
  }[];
}

export type ToBuilder = { readonly kind: 'build'; readonly job: BuildJob } | { readonly kind: 'cancel' };

export type FromBuilder =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number; readonly stage: string }
  | { readonly kind: 'result'; readonly result: BuildResult }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'error'; readonly error: ErrorFacts };

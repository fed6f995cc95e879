/**
 * Messages between the main thread and its engine workers. Readers answer queries, writers (home workers) own the writes of their replicas,
 * builders make segments. The bytes of requests and answers pass through undecoded.
 */

import type { MessagePort } from 'node:worker_threads';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import type { KeyedShard, PeerId, ReadConsistency, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig, CollectionParams, FieldSchema } from '../../protocols/model/collection.js';
import type { ExplainRequest, Explanation } from '../../protocols/model/explanation.js';
import type { RequestLimits } from '../../protocols/model/limits.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { Grants } from '../../protocols/model/scope.js';
import type { LeaderTag, LogTag, ShardEntry, TimedWrite } from '../../protocols/model/shard-log.js';
import type { UnknownField, UnknownFields } from '../../protocols/model/unknown-fields.js';
import type { UpdateShape, WriteOperation } from '../../protocols/model/update.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { WriteHop } from '../../protocols/model/write-hop.js';
import type { DatabaseSpace } from '../disk/lmdb.js';
import type { GatherPlace } from '../gather/access.js';
import type { SharedTokens } from '../limits/tokens.js';
import type { LedgerShare } from '../memory/shared-ledger.js';
import type { CacheUse } from '../reader/cache-uses.js';
import type { SeenScan } from '../reader/seen-scans.js';
import type { SegmentHandle, SegmentSet } from '../segment/handle.js';
import type { SubgraphSetting } from '../segment/layout.js';
import type { LogShare } from '../wal/log-budget.js';
import type { SentSet } from './sent-sets.js';
import type { ReplicaDigest, ShardPosition } from './shard-log.js';

/** `<collection>/<shard id>`: names a local replica in this process. */
export type ReplicaKey = string;

/** Shards with keys, by collection. */
export type ShardKeyMap = ReadonlyMap<string, readonly KeyedShard[]>;

/** Everything a worker needs to know of a replica besides its segments. */
export interface ReplicaSpec {
  readonly key: ReplicaKey;
  /** The folder with `lmdb/` and `segments/`. */
  readonly folder: string;
  readonly config: CollectionConfig;
  /** Number of readers of this process. A segment's memory has scratch for each, or some share it. */
  readonly readers: number;
}

/** How a portion is read. usage: what it costs is added to it. The others: as in `RawRequest`. */
export type PortionOptions = Pick<RawRequest, 'peer' | 'ring' | 'usage'>;

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

export interface HeavyRead {
  /** Not 0 once no client waits for the answer: Int32Array [1] in shared memory. */
  readonly gone: Int32Array;
}

/** A request as the HTTP or gRPC server received it. */
export interface RawRequest {
  /** Parameters of the matched route, decoded: `id`, `field_name`… */
  readonly path: Readonly<Record<string, string>>;
  /** Query parameters: `wait`, `timeout`, `ordering`, `consistency`. */
  readonly query: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  /** Full name of the gRPC message in the body, which also decides the form of the answer. Absent if both are JSON. */
  readonly message?: string;
  /** `steadyNowMs()` at which the work stops with `timeout`. */
  readonly deadlineMs: number;
  /** Where present, the work is measured; its cost is here when the request is answered. */
  readonly usage?: HardwareUsage;
  /** Where present, the read may ask to be explained, and how it was carried out is here when it is answered. */
  readonly explain?: ExplainRequest;
  /** Of a portion: the peer that it is asked of, for explanations. */
  readonly peer?: PeerId;
  /** Where present, fields of the body that the API does not have are here when the request is answered. */
  readonly unknownFields?: UnknownFields;
  /** The client's `timeout`, where it has given one. */
  readonly timeoutSeconds?: number;
  /** What the collection allows (strict mode); checked wherever the request is decoded. */
  readonly limits?: RequestLimits;
  /** The collections that the request may name, its own included; absent: all. Checked wherever the request is decoded. */
  readonly grants?: Grants;
  /** Tokens that the thread with the client's connection has taken for a write. Absent: none yet. */
  readonly paid?: number;
  /** Set for a read that quick ones should not wait for. */
  readonly heavy?: HeavyRead;
  /** Consistency of a read in a cluster; absent if one replica of each shard is enough. */
  readonly consistency?: ReadConsistency;
  /**
   * Set for a read in a cluster: points of other collections may be on other nodes, so lookups in them are refused with reason
   * `otherCollection`.
   */
  readonly localOnly?: true;
  /**
   * The ring in force, for a read while shards are resharded. Rows that the ring gives to another shard than the one that has them do not
   * count.
   */
  readonly ring?: readonly ShardId[];
}

// ------------------------------------------------------------------ writes over several shards

/** A write request and the shards that it is to be split by. */
export interface SplitJob {
  readonly operation: WriteOperation;
  readonly request: RawRequest;
  readonly params: CollectionParams;
  /** All shards of the collection, including those on other nodes. */
  readonly shards: readonly ShardId[];
  /** The same shards with their keys; absent if they have none. */
  readonly keyed?: readonly KeyedShard[];
  readonly wait: boolean;
}

/** A request to weigh (`weigh.ts`). params: of the collection that is written to. */
export type WeighJob =
  | { readonly kind: 'read'; readonly operation: ReadOperation; readonly request: RawRequest }
  | { readonly kind: 'write'; readonly operation: WriteOperation; readonly request: RawRequest; readonly params: CollectionParams };

/** A write request, decoded and checked, as each shard gets it. */
export interface SplitWrite extends UpdateShape {
  readonly stages: readonly WriteStage[];
  /** Of a request for one payload index: its field, and its schema, or null where it is dropped. */
  readonly index?: { readonly field: string; readonly schema: FieldSchema | null };
}

/** See `sharding/stages.ts`. */
export interface WriteStage {
  readonly needed: readonly { readonly shardId: ShardId; readonly ids: readonly PointId[] }[];
  readonly parts: readonly EncodedPart[];
}

/** The part of a write for one shard. */
export interface EncodedPart {
  readonly shardId: ShardId;
  /** For each of `operations`, the number of the request's operation that it is a part of. */
  readonly at: readonly number[];
  /** The operations as `encodeOperation` makes them, each at the start of a buffer of its own. */
  readonly operations: readonly Uint8Array[];
}

/** The answer to a portion of a read. */
export interface PortionResult {
  /** The encoded `PortionAnswer`. */
  readonly body: Uint8Array;
  /** For each replica, the number of the last operation that the answer includes. */
  readonly positions: readonly number[];
}

// ------------------------------------------------------------------ readers

/** What a reader checks of requests for a collection in strict mode. */
export interface OwnLimits {
  readonly request: RequestLimits;
  /** Where the rate of reads or writes is limited. */
  readonly tokens: Readonly<Record<SharedTokens['kind'], SharedTokens | null>>;
}

/** What a reader may answer peers of a collection of a cluster. */
export interface ServedShards {
  readonly name: string;
  readonly uid: number;
  readonly shardMapVersion: number;
  /** This node. */
  readonly self: PeerId;
  /** This node's replicas that may be read. */
  readonly replicas: ReadonlyMap<ShardId, ReplicaKey>;
}

/** A collection that any reader may read by itself. */
export interface OwnCollection {
  readonly limits?: OwnLimits;
  readonly kind: 'whole';
  /** This node's replicas of all its shards. */
  readonly replicas: readonly ReplicaKey[];
  /** Null on a node without a cluster. In one, other collections may have points on other nodes. */
  readonly served: ServedShards | null;
}

/** Shards that one node is asked for at once. isOwn: this node. */
export interface PeerShare {
  readonly peer: PeerId;
  readonly isOwn: boolean;
  readonly shards: readonly ShardId[];
}

/** A collection of a cluster that any reader may read by asking peers itself. */
export interface SpreadCollection {
  readonly kind: 'spread';
  readonly limits?: OwnLimits;
  readonly name: string;
  readonly place: GatherPlace;
  readonly shardMapVersion: number;
  /** This node's replicas that may be read. */
  readonly replicas: ReadonlyMap<ShardId, ReplicaKey>;
  readonly served: ServedShards;
  /** Each asks every shard once; equally good. */
  readonly ways: readonly (readonly PeerShare[])[];
  /** Whether another peer could be asked when one is slow. */
  readonly hasOthers: boolean;
}

/** How a peer is called. */
export interface PeerCard {
  /** `host:port` */
  readonly target: string;
  /** Of the peer's process. */
  readonly session: number;
  /** What a stream of calls begins with. */
  readonly greeting: Uint8Array;
  /** What the peer asks of those that connect: texts as PEM, and keys that are proven. */
  readonly entrance: {
    readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | null;
    readonly keys: readonly Uint8Array[];
  };
}

/** collections: by name and alias. peers: those that are in shares. */
export interface OwnReads {
  readonly collections: ReadonlyMap<string, OwnCollection | SpreadCollection>;
  readonly peers: ReadonlyMap<PeerId, PeerCard>;
}

/** What has changed of `OwnReads`. */
export interface OwnReadsChange {
  /** It is all there is: nothing of before holds. */
  readonly isWhole: boolean;
  /** By name and alias; null: a reader may not read it by itself. */
  readonly collections: ReadonlyMap<string, OwnCollection | SpreadCollection | null>;
  /** Those that are in shares of these collections. */
  readonly peers: ReadonlyMap<PeerId, PeerCard>;
}

/** A change as a reader gets it. A reader compares its version with the shared one before and after a read. */
export interface OwnReadsNews {
  readonly change: OwnReadsChange;
  /** What readers know after this change. */
  readonly version: number;
  /** The newest version, also while the view of it is on its way: Int32Array [1] in shared memory. */
  readonly newest: Int32Array;
  /** By reader, the deadline of the read that it answers by itself, 0 for none: Float64Array in shared memory. */
  readonly deadlines: Float64Array;
}

/** A replica that no thread has open. */
export interface Sleeping {
  readonly key: ReplicaKey;
  /** Number of its collection's shards; 0 where they have keys. */
  readonly shards: number;
}

/** `attach` with the set itself. */
export type Attach = Omit<Extract<ToReader, { kind: 'attach' }>, 'set'> & { readonly set: SegmentSet };

export type ToReader =
  /** A replica's newest set of segments. Older sets stay until `retire`. */
  | {
      readonly kind: 'attach';
      readonly spec: ReplicaSpec;
      /** Where each snapshot of the replica notes its use (`ReplicaUses`). */
      readonly place: number;
      /** Differs from that of every other opening of a replica: sets of one have the same memories. */
      readonly opening: number;
      readonly openCommit: number;
      /** `Environment.commits` of its writer. */
      readonly commits: Int32Array;
      readonly fields: ReadonlyMap<string, FieldSchema>;
      readonly set: SentSet;
    }
  /** Drops sets older than `generation`; answered by `retired`. freed: bytes that a collection frees then. */
  | { readonly kind: 'retire'; readonly key: ReplicaKey; readonly generation: number; readonly freed: number }
  /**
   * Closes the files of the replica; answered by `detached`. frees: whether memory worth a collection goes with it. sleeps: it is there, and
   * wakes when it is needed; otherwise it is forgotten.
   */
  | { readonly kind: 'detach'; readonly key: ReplicaKey; readonly frees: boolean; readonly sleeps: Sleeping | null }
  /** Replicas that were asleep are closed. */
  | { readonly kind: 'forget'; readonly keys: readonly ReplicaKey[] }
  /** These are there and asleep. */
  | { readonly kind: 'asleep'; readonly replicas: readonly Sleeping[] }
  /** The aliases of collections, for lookups in other collections. */
  | { readonly kind: 'aliases'; readonly aliases: AliasMap }
  /** The shards with keys, of all collections, including those on other nodes. */
  | { readonly kind: 'shardKeys'; readonly shards: ShardKeyMap }
  /** What has changed of what readers may read for clients without asking the main thread. The first one is whole. */
  | { readonly kind: 'ownReads'; readonly news: OwnReadsNews }
  /** Answered by `pong` when everything before it is done. */
  | { readonly kind: 'ping' }
  /** Closes everything, and the thread ends. It has no server for clients and no reads. */
  | { readonly kind: 'end' }
  /** Opens a server for clients in the reader's thread, if its entry has one. settings: for that server; the port leads to its owner. */
  | { readonly kind: 'door'; readonly port: MessagePort; readonly settings: unknown }
  | {
      readonly kind: 'read';
      readonly id: number;
      readonly operation: ReadOperation;
      readonly replicas: readonly ReplicaKey[];
      readonly request: RawRequest;
      /** It may be answered by `tooHeavy`. */
      readonly mayLeave: boolean;
    }
  /** A part of a distributed read (`portion/`), as `request.body`. Answered like a read. */
  | {
      readonly kind: 'portion';
      readonly id: number;
      readonly replicas: readonly ReplicaKey[];
      readonly request: RawRequest;
      readonly mayLeave: boolean;
    }
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
      /** Of a read that asks for it. */
      readonly explanation?: Explanation;
      /** The same for the trace of the call. */
      readonly trace?: Explanation;
      /** Of a read that took long: see `ExplainRequest`. */
      readonly plan?: string;
      /** Of the request; absent if there are none. */
      readonly unknownFields?: readonly UnknownField[];
      /** For a portion: see `PortionResult`. */
      readonly positions?: readonly number[];
    }
  /** The read needs these replicas, which are asleep. It is to come again when they are awake. */
  | { readonly kind: 'asleep'; readonly id: number; readonly keys: readonly ReplicaKey[] }
  /** Quick reads should not wait for this one, so another reader is to do it. */
  | { readonly kind: 'tooHeavy'; readonly id: number }
  | { readonly kind: 'split'; readonly id: number; readonly write: SplitWrite }
  | { readonly kind: 'weighed'; readonly id: number; readonly weight: number }
  | { readonly kind: 'error'; readonly id: number; readonly error: ErrorFacts }
  | { readonly kind: 'pong' }
  /** Since the last such message. */
  | { readonly kind: 'scans'; readonly scans: readonly SeenScan[] }
  | { readonly kind: 'cacheUses'; readonly uses: readonly CacheUse[] }
  | { readonly kind: 'retired'; readonly key: ReplicaKey; readonly generation: number }
  | { readonly kind: 'detached'; readonly key: ReplicaKey };

/** Data a reader's thread starts with. */
export interface ReaderData {
  /** 0..readers-1: which scratch of every segment is this reader's. */
  readonly index: number;
  /** See `ScratchTurns`. */
  readonly scratchTurns: Int32Array;
  /** See `ReplicaUses`. */
  readonly useTicks: Int32Array;
  /** Readers from this index on get nothing but heavy reads. */
  readonly firstForHeavy: number;
  /** Int32Array [1], shared: quick reads that all readers have answered; it wraps around. */
  readonly quickReads: Int32Array;
  readonly memory: LedgerShare;
}

// ------------------------------------------------------------------ writers

export interface WriterData {
  readonly logs: LogShare;
  readonly memory: LedgerShare;
}

/**
 * Why a replica is closed: somebody asked for it, it falls asleep and goes on being there, or the process ends, which closes its files more
 * cheaply than anybody can.
 */
export type ClosingReason = 'asked' | 'sleeps' | 'exit';

export type ToWriter =
  /** opening: no other opening of a replica has this number. */
  | { readonly kind: 'open'; readonly id: number; readonly spec: ReplicaSpec; readonly damaged: string | null; readonly opening: number }
  | { readonly kind: 'configure'; readonly id: number; readonly key: ReplicaKey; readonly config: CollectionConfig }
  /** frees: as in `detach`. */
  | { readonly kind: 'close'; readonly id: number; readonly key: ReplicaKey; readonly frees: boolean; readonly why: ClosingReason }
  | ToShardLog
  /** Answered by the first of these points that does not exist after all earlier writes, or null. */
  | { readonly kind: 'missing'; readonly id: number; readonly key: ReplicaKey; readonly ids: readonly PointId[] }
  /** Freezes the named segments as sources of a build of so many segments; answered by a `BuildSources`. */
  | {
      readonly kind: 'beginBuild';
      readonly id: number;
      readonly key: ReplicaKey;
      readonly segments: readonly number[];
      readonly results: number;
    }
  | { readonly kind: 'publishBuild'; readonly id: number; readonly key: ReplicaKey; readonly result: BuildResult }
  | { readonly kind: 'abandonBuild'; readonly id: number; readonly key: ReplicaKey; readonly segments: readonly number[] }
  /** All readers have dropped the sets before `generation`: segments that only these used may be removed. freed: as in `retire`. */
  | { readonly kind: 'retired'; readonly key: ReplicaKey; readonly generation: number; readonly freed: number };

/** Calls of `ShardLogPort`, each with the type of its answer. */
export type ToShardLog =
  /** Answered by a `WrittenTags`. */
  | { readonly kind: 'write'; readonly id: number; readonly key: ReplicaKey; readonly as: LeaderTag; readonly write: TimedWrite }
  /** Answered by a `LogTag`. */
  | {
      readonly kind: 'append';
      readonly id: number;
      readonly key: ReplicaKey;
      readonly previous: LogTag;
      readonly entries: readonly ShardEntry[];
      readonly until: 'logged' | 'applied';
    }
  /** Answered by a `ShardPosition`. */
  | { readonly kind: 'position'; readonly id: number; readonly key: ReplicaKey }
  /** Answered by a `LogPart`. */
  | { readonly kind: 'entriesAfter'; readonly id: number; readonly key: ReplicaKey; readonly after: LogTag; readonly bytesMax: number }
  /** Answered by a `LogReach`. */
  | { readonly kind: 'reachOf'; readonly id: number; readonly key: ReplicaKey; readonly after: LogTag; readonly untilMs: number }
  | { readonly kind: 'resetLog'; readonly id: number; readonly key: ReplicaKey; readonly at: LogTag }
  | { readonly kind: 'rewindLog'; readonly id: number; readonly key: ReplicaKey; readonly to: LogTag }
  /** Answered by a `ReplicaDigest`. */
  | { readonly kind: 'digest'; readonly id: number; readonly key: ReplicaKey; readonly leaders: ReplicaDigest | null }
  /** Answered by a `BucketPoints`. */
  | { readonly kind: 'bucketPoints'; readonly id: number; readonly key: ReplicaKey; readonly buckets: readonly number[] }
  /** Answered by the number of points that were changed, added or removed. */
  | { readonly kind: 'replaceBuckets'; readonly id: number; readonly key: ReplicaKey; readonly bytes: Uint8Array }
  /** Answered by encoded operations. */
  | { readonly kind: 'settings'; readonly id: number; readonly key: ReplicaKey }
  | { readonly kind: 'applySettings'; readonly id: number; readonly key: ReplicaKey; readonly operations: readonly Uint8Array[] }
  /** Answered by a `ReplicaCheckpoint`, possibly after the answers to later calls. */
  | {
      readonly kind: 'checkpoint';
      readonly id: number;
      readonly key: ReplicaKey;
      readonly folder: string;
      readonly isFollowed: boolean;
    }
  | { readonly kind: 'releaseCheckpoint'; readonly id: number; readonly key: ReplicaKey };

/** The result of a write, without the operations, which the caller has. */
export interface WrittenTags {
  readonly tags: readonly LogTag[];
  /** Of all of them: see `ShardEntry`. */
  readonly timeMs: number;
  /** How many of the operations are in the log; for the others the log has `NOTHING`. */
  readonly carriedOut: number;
  readonly failure: ErrorFacts | null;
  /** Of a request that was undecoded. */
  readonly shape?: UpdateShape;
  /** Of a write that is part of a trace. */
  readonly hop?: WriteHop;
}

export type FromWriter =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'answer';
      readonly id: number;
      readonly value?: unknown;
      readonly usage?: HardwareUsage | null;
      readonly stats: ReplicaStats | null;
    }
  | { readonly kind: 'error'; readonly id: number; readonly error: ErrorFacts; readonly stats: ReplicaStats | null }
  /**
   * A new set of segments. It is posted before the commit that makes it current, so readers may have to wait for the set, but never for its
   * rows.
   */
  | {
      readonly kind: 'publish';
      readonly spec: ReplicaSpec;
      /** As in `open`. */
      readonly opening: number;
      readonly openCommit: number;
      readonly commits: Int32Array;
      readonly fields: ReadonlyMap<string, FieldSchema>;
      readonly set: SentSet;
    }
  /** The set of `generation` is committed; older sets can be retired. */
  | { readonly kind: 'published'; readonly key: ReplicaKey; readonly generation: number }
  /** State of a replica after commits that no answer reported (writes that did not wait). */
  | { readonly kind: 'stats'; readonly stats: ReplicaStats }
  /** Filters of operations for which payloads were read. */
  | { readonly kind: 'scans'; readonly scans: readonly SeenScan[] }
  /** The replica cannot go on (its files are damaged, its disk refuses): its actor becomes Dead. */
  | { readonly kind: 'failed'; readonly key: ReplicaKey; readonly error: ErrorFacts };

export interface GraphStats {
  /** The vector's name. */
  readonly name: string;
  readonly m: number;
  readonly efConstruct: number;
  /** Absent if no sub-graphs were asked for. */
  readonly subgraphs?: SubgraphSetting;
  /** The rows lie in lists on disk in place of a graph; m and efConstruct are 0. Absent: they do not. */
  readonly inLists?: true;
}

export interface SegmentStats {
  readonly id: number;
  readonly kind: 'appendable' | 'sealed';
  readonly rows: number;
  readonly deleted: number;
  /** Bytes of the original vectors of all rows. */
  readonly vectorBytes: number;
  /** Bytes of the payloads of all rows. */
  readonly payloadBytes: number;
  /** Of its files, and what it takes of memory while the replica is open. Absent in what an earlier release wrote of a replica that is asleep. */
  readonly diskBytes?: number;
  readonly memoryBytes?: number;
  /** The segment takes no more rows: it is the source of a build, or full. */
  readonly frozen: boolean;
  /** Reads do not see its rows until a build has taken them (`prevent_unoptimized`). */
  readonly deferred: boolean;
  /** The segment is a source of a running build. */
  readonly building: boolean;
  /** The settings of the graphs, for each vector that has one, or lists in its place. m: 0 if it has only sub-graphs. */
  readonly graphs: readonly GraphStats[];
  /** The quantization of each vector's codes, as text; vectors without codes are left out. Empty for appendable segments. */
  readonly quantized: readonly { readonly name: string; readonly setting: string }[];
  /** Live rows × vectors with a graph, lists or an inverted index. */
  readonly indexedVectors: number;
  /** For each indexed field of the replica, in the order of `fields`, the rows with a value that count. Absent as `diskBytes` may be. */
  readonly fieldRows?: readonly number[];
  /** Payload fields that have a schema but no index file here yet. */
  readonly missingFields: readonly string[];
  /** Files that failed their checksum and can be built again (graph, codes, inverted index, field index). */
  readonly damagedFiles: readonly string[];
}

export interface ReplicaStats {
  readonly key: ReplicaKey;
  /** Number of points that reads see. */
  readonly points: number;
  /** Number of points whose newest row reads do not see yet. */
  readonly deferredPoints: number;
  /** Reads see all operations below this one: a deferred point may be of it or of a later one. Absent if no point is deferred. */
  readonly deferredFrom?: number;
  /** Whether points may be deferred (`prevent_unoptimized`). */
  readonly defers: boolean;
  readonly segments: readonly SegmentStats[];
  readonly fields: ReadonlyMap<string, FieldSchema>;
  /** For each indexed field, the number of points with a value that reads see. */
  readonly fieldPoints: ReadonlyMap<string, number>;
  readonly appliedOperation: number;
  /** Number of operations in the WAL that are not applied yet. */
  readonly queuedOperations: number;
  readonly commits: number;
  /** What the log costs on disk. */
  readonly walBytes: number;
  /** Of the LMDB file; null while it is not known. */
  readonly database: DatabaseSpace | null;
  /** The log has lost what a checkpoint needs: see `log-budget.ts`, Kept-K4. */
  readonly lostCheckpoint?: boolean;
  /** `steadyNowMs()` of the last applied write, 0 for none. */
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
  /** Commit sequence at which the sources are read; deletions of later commits are carried over at publication. */
  readonly seq: number;
  /** Rows of each source at `seq`, aligned with `sources`. */
  readonly rows: readonly number[];
  readonly sources: readonly SegmentHandle[];
  readonly fields: ReadonlyMap<string, FieldSchema>;
  /** Ids of the segments to make, at least one: each gets as many rows as the others. */
  readonly segmentIds: readonly number[];
}

export interface BuildJob extends BuildSources {
  /**
   * - `segment`: new sealed segments from all sources, mostly one (indexing, merge, vacuum, repair of codes and graph);
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

/** A segment that a build has made. */
export interface BuiltSegment {
  readonly handle: SegmentHandle;
  /** For each source: u32 [rows]: the new row of a source row, 0xffffffff where it was not taken. */
  readonly rowMaps: readonly SharedArrayBuffer[];
}

export interface BuildResult {
  readonly plan: 'segment' | 'fieldIndex';
  readonly sources: readonly number[];
  /** At least one; of `fieldIndex` the source itself, without row maps. */
  readonly built: readonly BuiltSegment[];
  readonly seq: number;
  readonly report: BuildReport;
}

/** Facts about a finished build, or one of its segments, for telemetry and logs. */
export interface BuildReport {
  readonly rows: number;
  readonly milliseconds: number;
  /** Per vector name: the element type the graph was built in and the recall measured on a sample. */
  readonly graphs: readonly {
    readonly name: string;
    readonly element: 'i8' | 'f16' | 'f32';
    readonly recall: number;
    readonly milliseconds: number;
    /** The number of sub-graphs; the element is that of the last one, the recall the lowest. Absent for one graph over all rows. */
    readonly values?: number;
  }[];
}

/** stays: the thread waits for another job once it has answered, one job after the other; else it ends. */
export type ToBuilder = { readonly kind: 'build'; readonly job: BuildJob; readonly stays: boolean } | { readonly kind: 'cancel' };

export type FromBuilder =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number; readonly stage: string }
  | { readonly kind: 'result'; readonly result: BuildResult }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'error'; readonly error: ErrorFacts };

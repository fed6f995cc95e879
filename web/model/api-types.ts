/** The parts of answers that the dashboard reads. */

export interface ShownVector {
  readonly size: number;
  readonly distance: string;
  readonly multivector_config?: unknown;
}

export interface CollectionInfo {
  readonly status: 'green' | 'yellow' | 'grey' | 'red';
  readonly optimizer_status: 'ok' | { readonly error: string };
  readonly warnings?: readonly { readonly message: string }[];
  readonly indexed_vectors_count?: number;
  readonly points_count?: number;
  readonly segments_count: number;
  readonly config: {
    readonly params: {
      readonly vectors?: ShownVector | Readonly<Record<string, ShownVector>>;
      readonly sparse_vectors?: Readonly<Record<string, unknown>>;
      readonly shard_number?: number;
      readonly replication_factor?: number;
    };
    readonly optimizer_config: { readonly indexing_threshold?: number | null };
  } & Readonly<Record<string, unknown>>;
  readonly payload_schema: Readonly<Record<string, { readonly data_type: string; readonly points?: number }>>;
  readonly update_queue?: { readonly length: number; readonly deferred_points?: number };
}

export interface CollectionCluster {
  readonly peer_id: number;
  readonly shard_count: number;
  readonly local_shards: readonly LocalShard[];
  readonly remote_shards: readonly RemoteShard[];
  readonly shard_transfers: readonly ShardTransfer[];
}

interface LocalShard {
  readonly shard_id: number;
  readonly shard_key?: string | number;
  readonly points_count: number;
  readonly state: string;
}

interface RemoteShard {
  readonly shard_id: number;
  readonly shard_key?: string | number;
  readonly peer_id: number;
  readonly state: string;
}

export interface ShardTransfer {
  readonly shard_id: number;
  readonly to_shard_id?: number;
  readonly from: number;
  readonly to: number;
  readonly sync: boolean;
  readonly method?: string;
  readonly comment?: string;
}

export interface ShownCluster {
  readonly status: 'enabled' | 'disabled';
  readonly peer_id?: number;
  readonly peers?: Readonly<Record<string, { readonly uri: string }>>;
  readonly raft_info?: {
    readonly term: number;
    readonly commit: number;
    readonly pending_operations: number;
    readonly leader: number | null;
    readonly role: string | null;
  };
  readonly message_send_failures?: Readonly<Record<string, { readonly count: number; readonly latest_error?: string }>>;
}

export interface OptimizedSegment {
  readonly uuid: string;
  readonly points_count: number;
}

export interface OptimizationProgress {
  readonly name: string;
  readonly started_at?: string;
  readonly finished_at?: string;
  readonly duration_sec?: number;
  readonly done?: number;
  readonly total?: number;
  readonly children?: readonly OptimizationProgress[];
}

export interface Optimization {
  readonly uuid?: string;
  readonly optimizer: string;
  readonly status?: string | Readonly<Record<string, unknown>>;
  readonly segments: readonly OptimizedSegment[];
  readonly progress?: OptimizationProgress;
}

export interface Optimizations {
  readonly summary: {
    readonly queued_optimizations: number;
    readonly queued_segments: number;
    readonly queued_points: number;
    readonly idle_segments: number;
  };
  readonly running: readonly Optimization[];
  readonly queued?: readonly Optimization[];
  readonly completed?: readonly Optimization[];
  readonly idle_segments?: readonly OptimizedSegment[];
}

export type Vector =
  | readonly number[]
  | readonly (readonly number[])[]
  | { readonly indices: readonly number[]; readonly values: readonly number[] };

export interface Point {
  readonly id: number | string;
  readonly payload?: Readonly<Record<string, unknown>> | null;
  readonly vector?: Vector | Readonly<Record<string, Vector>> | null;
  readonly score?: number;
}

export interface ShownSnapshot {
  readonly name: string;
  readonly creation_time: string | null;
  readonly size: number;
  readonly checksum: string | null;
}

export interface ActorReport {
  readonly path: string;
  readonly kind: string;
  readonly state: string;
  readonly replicaState?: string;
  readonly mailbox: { readonly depth: number; readonly capacity: number };
  readonly processed: number;
  readonly restarts: number;
  readonly lastError: { readonly message: string; readonly timeMs: number } | null;
  readonly uptimeMs: number;
  readonly recent: readonly { readonly timeMs: number; readonly message: string; readonly summary: string; readonly state: string }[];
  readonly children: readonly ActorReport[];
}

export interface WorkerReport {
  readonly name: string;
  readonly kind: string;
  readonly begun: boolean;
  readonly up: boolean;
  /** What it gives no sign of life about. */
  readonly stuck: { readonly call: string } | null;
  readonly restarts: number;
  readonly depth: number;
  readonly processed: number;
}

export interface Telemetry {
  readonly app: {
    readonly version: string;
    readonly troupe_version?: string;
    readonly startup: string;
    readonly actors?: ActorReport;
    readonly engine?: EngineReport;
    /** Of a node of a cluster. */
    readonly transfers?: TransferReports;
  };
  readonly actors?: ActorReport;
  readonly engine?: EngineReport;
}

/** Of the transfers that the node which is asked runs. */
export interface TransferReports {
  readonly running: readonly TransferReport[];
  readonly ended: readonly TransferReport[];
  readonly migrations: readonly Omit<TransferReport, 'from' | 'to' | 'method'>[];
}

export interface TransferReport {
  readonly collection: string;
  readonly shard_id: number;
  readonly from: number;
  readonly to: number;
  readonly method: string;
  readonly stage?: string;
  readonly seconds?: number;
  readonly points_total?: number;
  readonly points_sent?: number;
  readonly bytes_total?: number;
  readonly bytes_sent?: number;
  /** Points or bytes per second. */
  readonly rate?: number;
  readonly eta_seconds?: number | null;
  readonly failures?: number;
  readonly cause?: string | null;
  /** Of those that ended. */
  readonly outcome?: string;
  readonly ended?: string;
}

export interface EngineReport {
  readonly waitingReads?: number;
  readonly workers: readonly WorkerReport[];
  readonly memory?: { readonly budget_bytes: number; readonly used_bytes: number };
  readonly disk?: { readonly total_bytes: number; readonly free_bytes: number; readonly refuses_writes: boolean };
}

/** Every setting of a node: its key, type and default. Source: the configuration contract. */

import { SHARDS_MAX } from '../../protocols/rest/collections.js';
import { flagLeaf, fraction, groupListLeaf, integerLeaf, type Leaf, openObject, orNull, textLeaf, textListLeaf, word } from './leaf.js';

const NOT_NEGATIVE = { min: 0 };
const POSITIVE = { min: 1 };
const PORT = { min: 0, max: 65535 };
const LOG_FORMATS = ['text', 'json'] as const;

/** The settings tree: groups of settings and leaves. */
export const SETTINGS = {
  log_level: textLeaf('INFO'),
  logger: {
    format: word(LOG_FORMATS, 'text'),
    on_disk: {
      enabled: flagLeaf(false),
      log_file: textLeaf('./troupe.log'),
      log_level: orNull(textLeaf('INFO')),
      format: word(LOG_FORMATS, 'text'),
      buffer_size_bytes: integerLeaf(1024, NOT_NEGATIVE),
    },
  },
  storage: {
    storage_path: textLeaf('./storage'),
    disk_free_min_mb: orNull(integerLeaf(1, NOT_NEGATIVE)),
    disk_reserve_mb: integerLeaf(4, { min: 0, max: 1024 }),
    log_budget_mb: orNull(integerLeaf(1, POSITIVE)),
    // Troupe's own.
    point_in_time_restore: flagLeaf(false),
    snapshots_path: textLeaf('./snapshots'),
    snapshots_config: {
      snapshots_storage: word(['local', 's3'], 'local'),
      s3_config: {
        bucket: orNull(textLeaf('')),
        region: orNull(textLeaf('')),
        access_key: orNull(textLeaf('')),
        secret_key: orNull(textLeaf('')),
        endpoint_url: orNull(textLeaf('')),
      },
    },
    // Troupe's own: see `backup-settings.ts`.
    backups: groupListLeaf(),
    temp_path: orNull(textLeaf('')),
    on_disk_payload: flagLeaf(true),
    update_concurrency: orNull(integerLeaf(1, POSITIVE)),
    wal: {
      wal_capacity_mb: integerLeaf(32, POSITIVE),
      wal_segments_ahead: integerLeaf(0, NOT_NEGATIVE),
      wal_retain_closed: integerLeaf(1, NOT_NEGATIVE),
    },
    node_type: word(['Normal', 'Listener'], 'Normal'),
    recovery_mode: orNull(textLeaf('')),
    performance: {
      max_search_threads: integerLeaf(0, NOT_NEGATIVE),
      optimizer_cpu_budget: integerLeaf(0, {}),
      update_rate_limit: orNull(integerLeaf(1, POSITIVE)),
      // Troupe's own.
      memory_budget_mb: orNull(integerLeaf(1, { min: 16 })),
      thread_silence_sec: integerLeaf(60, { min: 4 }),
      incoming_shard_transfers_limit: orNull(integerLeaf(1, NOT_NEGATIVE), 1),
      outgoing_shard_transfers_limit: orNull(integerLeaf(1, NOT_NEGATIVE), 1),
    },
    optimizers: optimizers({
      deleted_threshold: fraction(0.2),
      vacuum_min_vector_number: integerLeaf(1000, { min: 100 }),
      default_segment_number: integerLeaf(0, NOT_NEGATIVE),
      // Null shows as null in a collection's configuration and leaves the choice to the node.
      memmap_threshold: orNull(integerLeaf(0, NOT_NEGATIVE)),
      indexing_threshold_kb: integerLeaf(10000, NOT_NEGATIVE),
      flush_interval_sec: integerLeaf(5, NOT_NEGATIVE),
    }),
    optimizers_overwrite: optimizers({
      deleted_threshold: orNull(fraction(0)),
      vacuum_min_vector_number: orNull(integerLeaf(0, { min: 100 })),
      default_segment_number: orNull(integerLeaf(0, NOT_NEGATIVE)),
      memmap_threshold: orNull(integerLeaf(0, NOT_NEGATIVE)),
      indexing_threshold_kb: orNull(integerLeaf(0, NOT_NEGATIVE)),
      flush_interval_sec: orNull(integerLeaf(0, NOT_NEGATIVE)),
    }),
    hnsw_index: {
      m: integerLeaf(16, NOT_NEGATIVE),
      ef_construct: integerLeaf(100, { min: 4 }),
      full_scan_threshold_kb: integerLeaf(10000, { min: 10 }),
      max_indexing_threads: integerLeaf(0, NOT_NEGATIVE),
      on_disk: flagLeaf(false),
      payload_m: orNull(integerLeaf(0, NOT_NEGATIVE)),
    },
    shard_transfer_method: orNull(word(['stream_records', 'snapshot', 'wal_delta'], 'stream_records')),
    collection: {
      replication_factor: integerLeaf(1, POSITIVE),
      write_consistency_factor: integerLeaf(1, POSITIVE),
      vectors: { on_disk: orNull(flagLeaf(false)) },
      quantization: openObject(),
      strict_mode: openObject(),
      shard_number_per_node: orNull(integerLeaf(1, { min: 1, max: SHARDS_MAX })),
    },
    max_collections: orNull(integerLeaf(1, NOT_NEGATIVE)),
  },
  service: {
    max_request_size_mb: integerLeaf(32, { min: 1, max: 2047 }),
    max_workers: integerLeaf(0, NOT_NEGATIVE),
    host: textLeaf('0.0.0.0'),
    http_port: integerLeaf(6333, PORT),
    grpc_port: orNull(integerLeaf(6334, PORT), 6334),
    enable_cors: flagLeaf(true),
    // Troupe's own.
    compression_min_bytes: orNull(integerLeaf(1024, { min: 256 }), 1024),
    // Troupe's own: addresses and networks of clients.
    allow_clients: textListLeaf(),
    deny_clients: textListLeaf(),
    // Troupe's own: null for what the machine has room for.
    max_connections: orNull(integerLeaf(1, POSITIVE)),
    max_connections_per_client: orNull(integerLeaf(1, POSITIVE)),
    enable_tls: flagLeaf(false),
    verify_https_client_certificate: flagLeaf(false),
    api_key: orNull(textLeaf('')),
    // Troupe's own.
    secured: flagLeaf(false),
    alt_api_key: orNull(textLeaf('')),
    read_only_api_key: orNull(textLeaf('')),
    jwt_rbac: flagLeaf(false),
    enforce_internal_auth: flagLeaf(false),
    hardware_reporting: flagLeaf(false),
    // Troupe's own.
    slow_request_ms: orNull(integerLeaf(1000, POSITIVE), 1000),
    metrics_prefix: textLeaf(''),
    // Troupe's own.
    unknown_fields: word(['ignore', 'refuse'], 'ignore'),
    enable_snapshot_url_recovery: flagLeaf(true),
    // Troupe's own: addresses, networks and names of hosts.
    snapshot_url_allow: textListLeaf(),
    enable_static_content: flagLeaf(true),
    static_content_dir: orNull(textLeaf('')),
  },
  cluster: {
    enabled: flagLeaf(false),
    p2p: { port: integerLeaf(6335, PORT), enable_tls: flagLeaf(false) },
    consensus: { tick_period_ms: integerLeaf(100, POSITIVE), compact_wal_entries: integerLeaf(128, NOT_NEGATIVE) },
    // Troupe's own.
    digest_period_sec: integerLeaf(600, NOT_NEGATIVE),
    leader_spread_sec: integerLeaf(30, NOT_NEGATIVE),
    survivor: word(['local', 'always', 'never'], 'local'),
  },
  tls: {
    cert: textLeaf('./tls/cert.pem'),
    key: textLeaf('./tls/key.pem'),
    ca_cert: textLeaf('./tls/cacert.pem'),
    cert_ttl: orNull(integerLeaf(3600, POSITIVE), 3600),
  },
  audit: {
    enabled: flagLeaf(false),
    dir: textLeaf('./storage/audit'),
    rotation: word(['daily', 'hourly'], 'daily'),
    max_log_files: integerLeaf(7, POSITIVE),
    trust_forwarded_headers: flagLeaf(false),
  },
  // Troupe's own: traces and metrics for a collector that speaks OTLP over HTTP.
  otlp: {
    endpoint: orNull(textLeaf('')),
    headers: textListLeaf(),
    service_name: textLeaf('troupe'),
    trace_ratio: fraction(0.01),
    metrics_period_sec: integerLeaf(30, NOT_NEGATIVE),
  },
} as const;

/** Other names of settings, as key paths. */
export const SETTING_ALIASES: ReadonlyMap<string, string> = new Map([
  ['storage.optimizers.memmap_threshold_kb', 'storage.optimizers.memmap_threshold'],
  ['storage.optimizers.indexing_threshold', 'storage.optimizers.indexing_threshold_kb'],
  ['storage.optimizers.max_segment_size', 'storage.optimizers.max_segment_size_kb'],
  ['storage.optimizers_overwrite.memmap_threshold_kb', 'storage.optimizers_overwrite.memmap_threshold'],
  ['storage.optimizers_overwrite.indexing_threshold', 'storage.optimizers_overwrite.indexing_threshold_kb'],
  ['storage.optimizers_overwrite.max_segment_size', 'storage.optimizers_overwrite.max_segment_size_kb'],
  ['storage.hnsw_index.full_scan_threshold', 'storage.hnsw_index.full_scan_threshold_kb'],
]);

export type SettingsGroup = { readonly [key: string]: SettingsGroup | Leaf<unknown> };

type Values<Group> = {
  readonly [Key in keyof Group]: Group[Key] extends Leaf<infer Value> ? Value : Values<Group[Key]>;
};

/** All settings of a node with their values. */
export type NodeSettings = Values<typeof SETTINGS>;

/** Whether a node of the settings tree is a leaf. */
export function isLeaf(node: SettingsGroup | Leaf<unknown>): node is Leaf<unknown> {
  return node.kind === 'leaf';
}

function optimizers<Own extends SettingsGroup>(own: Own) {
  return {
    ...own,
    max_segment_size_kb: orNull(integerLeaf(1, POSITIVE)),
    max_optimization_threads: orNull(integerLeaf(0, NOT_NEGATIVE)),
  };
}

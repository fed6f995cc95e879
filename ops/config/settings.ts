/** Every setting of a node: its key, type and default. Source: the configuration contract. */

import { SHARDS_MAX } from '../../protocols/rest/collections.js';
import { flag, fraction, integer, type Leaf, openObject, orNull, text, word } from './leaf.js';

const NOT_NEGATIVE = { min: 0 };
const POSITIVE = { min: 1 };
const PORT = { min: 0, max: 65535 };
const LOG_FORMATS = ['text', 'json'] as const;

/** The settings tree: groups of settings and leaves. */
export const SETTINGS = {
  log_level: text('INFO'),
  logger: {
    format: word(LOG_FORMATS, 'text'),
    on_disk: {
      enabled: flag(false),
      log_file: text('./troupe.log'),
      log_level: orNull(text('INFO')),
      format: word(LOG_FORMATS, 'text'),
      buffer_size_bytes: integer(1024, NOT_NEGATIVE),
    },
  },
  storage: {
    storage_path: text('./storage'),
    snapshots_path: text('./snapshots'),
    snapshots_config: {
      snapshots_storage: word(['local', 's3'], 'local'),
      s3_config: {
        bucket: orNull(text('')),
        region: orNull(text('')),
        access_key: orNull(text('')),
        secret_key: orNull(text('')),
        endpoint_url: orNull(text('')),
      },
    },
    temp_path: orNull(text('')),
    on_disk_payload: flag(true),
    update_concurrency: orNull(integer(1, POSITIVE)),
    wal: {
      wal_capacity_mb: integer(32, POSITIVE),
      wal_segments_ahead: integer(0, NOT_NEGATIVE),
      wal_retain_closed: integer(1, NOT_NEGATIVE),
    },
    node_type: word(['Normal', 'Listener'], 'Normal'),
    recovery_mode: orNull(text('')),
    performance: {
      max_search_threads: integer(0, NOT_NEGATIVE),
      optimizer_cpu_budget: integer(0, {}),
      update_rate_limit: orNull(integer(1, POSITIVE)),
      incoming_shard_transfers_limit: orNull(integer(1, NOT_NEGATIVE), 1),
      outgoing_shard_transfers_limit: orNull(integer(1, NOT_NEGATIVE), 1),
    },
    optimizers: optimizers({
      deleted_threshold: fraction(0.2),
      vacuum_min_vector_number: integer(1000, { min: 100 }),
      default_segment_number: integer(0, NOT_NEGATIVE),
      // Null shows as null in a collection's configuration and leaves the choice to the node.
      memmap_threshold: orNull(integer(0, NOT_NEGATIVE)),
      indexing_threshold_kb: integer(10000, NOT_NEGATIVE),
      flush_interval_sec: integer(5, NOT_NEGATIVE),
    }),
    optimizers_overwrite: optimizers({
      deleted_threshold: orNull(fraction(0)),
      vacuum_min_vector_number: orNull(integer(0, { min: 100 })),
      default_segment_number: orNull(integer(0, NOT_NEGATIVE)),
      memmap_threshold: orNull(integer(0, NOT_NEGATIVE)),
      indexing_threshold_kb: orNull(integer(0, NOT_NEGATIVE)),
      flush_interval_sec: orNull(integer(0, NOT_NEGATIVE)),
    }),
    hnsw_index: {
      m: integer(16, NOT_NEGATIVE),
      ef_construct: integer(100, { min: 4 }),
      full_scan_threshold_kb: integer(10000, { min: 10 }),
      max_indexing_threads: integer(0, NOT_NEGATIVE),
      on_disk: flag(false),
      payload_m: orNull(integer(0, NOT_NEGATIVE)),
    },
    shard_transfer_method: orNull(word(['stream_records', 'snapshot', 'wal_delta'], 'stream_records')),
    collection: {
      replication_factor: integer(1, POSITIVE),
      write_consistency_factor: integer(1, POSITIVE),
      vectors: { on_disk: orNull(flag(false)) },
      quantization: openObject(),
      strict_mode: openObject(),
      shard_number_per_node: orNull(integer(1, { min: 1, max: SHARDS_MAX })),
    },
    max_collections: orNull(integer(1, NOT_NEGATIVE)),
  },
  service: {
    max_request_size_mb: integer(32, { min: 1, max: 2047 }),
    max_workers: integer(0, NOT_NEGATIVE),
    host: text('0.0.0.0'),
    http_port: integer(6333, PORT),
    grpc_port: orNull(integer(6334, PORT), 6334),
    enable_cors: flag(true),
    enable_tls: flag(false),
    verify_https_client_certificate: flag(false),
    api_key: orNull(text('')),
    alt_api_key: orNull(text('')),
    read_only_api_key: orNull(text('')),
    jwt_rbac: flag(false),
    enforce_internal_auth: flag(false),
    hardware_reporting: flag(false),
    metrics_prefix: text(''),
    enable_snapshot_url_recovery: flag(true),
    enable_static_content: flag(true),
    static_content_dir: orNull(text('')),
  },
  cluster: {
    enabled: flag(false),
    p2p: { port: integer(6335, PORT), enable_tls: flag(false) },
    consensus: { tick_period_ms: integer(100, POSITIVE), compact_wal_entries: integer(128, NOT_NEGATIVE) },
    // Troupe's own.
    digest_period_sec: integer(600, NOT_NEGATIVE),
    leader_spread_sec: integer(30, NOT_NEGATIVE),
    survivor: word(['local', 'always', 'never'], 'local'),
  },
  tls: {
    cert: text('./tls/cert.pem'),
    key: text('./tls/key.pem'),
    ca_cert: text('./tls/cacert.pem'),
    cert_ttl: orNull(integer(3600, POSITIVE), 3600),
  },
  audit: {
    enabled: flag(false),
    dir: text('./storage/audit'),
    rotation: word(['daily', 'hourly'], 'daily'),
    max_log_files: integer(7, POSITIVE),
    trust_forwarded_headers: flag(false),
  },
} as const;

/** Other names of settings, as key paths. */
export const ALIASES: ReadonlyMap<string, string> = new Map([
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
export type Settings = Values<typeof SETTINGS>;

/** Whether a node of the settings tree is a leaf. */
export function isLeaf(node: SettingsGroup | Leaf<unknown>): node is Leaf<unknown> {
  return node.kind === 'leaf';
}

function optimizers<Own extends SettingsGroup>(own: Own) {
  return {
    ...own,
    max_segment_size_kb: orNull(integer(1, POSITIVE)),
    max_optimization_threads: orNull(integer(0, NOT_NEGATIVE)),
  };
}

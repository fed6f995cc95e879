/** `segments` of a shard in `GET /telemetry`, from `details_level` 3 on. Source: contract, `SegmentTelemetry`. */

import { segmentUuid } from '../../actors/requests/report.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import { type CollectionConfig, sparseByName, vectorNamesOf, vectorsByName } from '../../protocols/model/collection.js';
import type { ReplicaStats, SegmentStats } from '../../storage/threads/messages.js';

type Json = Record<string, unknown>;

export interface SegmentOwner {
  readonly peer: PeerId;
  readonly shardId: ShardId;
  readonly config: CollectionConfig;
  readonly fields: ReplicaStats['fields'];
  /** What to show of a payload field. */
  readonly shownField: (field: string) => string;
}

/** Of vectors as of payload fields, each point counts as one with each of them that the segment has. */
export function segmentTelemetry(segment: SegmentStats, owner: SegmentOwner): Json {
  const { config, fields, shownField } = owner;
  const fieldRows = segment.fieldRows ?? [];
  const indexed = [...fields].flatMap(([field, schema], at) =>
    segment.missingFields.includes(field) ? [] : [{ field: shownField(field), schema, points: fieldRows[at] ?? 0 }],
  );
  return {
    info: {
      ...counts(segment, owner),
      index_schema: Object.fromEntries(
        indexed.map(({ field, points, schema: { params, type } }) => [
          field,
          { data_type: type, ...(params === undefined ? {} : { params }), points },
        ]),
      ),
    },
    config: {
      vector_data: denseConfigs(segment, config),
      sparse_vector_data: sparseConfigs(segment, config),
      payload_storage_type: { type: config.params.on_disk_payload ? 'mmap' : 'in_ram_mmap' },
    },
    // Searches are counted by collection and by node: a count for each segment would cost every search something.
    vector_index_searches: [],
    payload_field_indices: indexed.map(({ field, points, schema }) => ({
      field_name: field,
      index_type: schema.type,
      points_values_count: points,
      points_count: points,
    })),
  };
}

function counts(segment: SegmentStats, { config, peer, shardId }: SegmentOwner): Json {
  const { deleted, graphs, rows } = segment;
  const live = rows - deleted;
  const names = vectorNamesOf(config.params);
  const sparse = sparseByName(config.params);
  const isIndexed = (name: string): boolean => (sparse.has(name) ? segment.kind === 'sealed' : graphs.some((graph) => graph.name === name));
  return {
    uuid: segmentUuid(shardId, segment.id, { peer }),
    segment_type: segment.indexedVectors > 0 ? 'indexed' : 'plain',
    num_vectors: live * names.length,
    num_points: live,
    ...(segment.deferred ? { num_deferred_points: live } : {}),
    num_indexed_vectors: segment.indexedVectors,
    num_deleted_vectors: deleted * names.length,
    vectors_size_bytes: segment.vectorBytes,
    payloads_size_bytes: segment.payloadBytes,
    ram_usage_bytes: segment.memoryBytes ?? 0,
    disk_usage_bytes: segment.diskBytes ?? 0,
    is_appendable: segment.kind === 'appendable',
    vector_data: Object.fromEntries(
      names.map((name) => [name, { num_vectors: live, num_indexed_vectors: isIndexed(name) ? live : 0, num_deleted_vectors: deleted }]),
    ),
  };
}

/** As the segment was built, which may not be as its collection wants it by now. */
function denseConfigs({ graphs, kind, quantized }: SegmentStats, config: CollectionConfig): Json {
  const chunked = kind === 'appendable' ? 'Chunked' : '';
  return Object.fromEntries(
    [...vectorsByName(config.params.vectors)].map(([name, vector]) => {
      const graph = graphs.find((known) => known.name === name);
      const hnsw = { ...config.hnsw_config, ...vector.hnsw_config };
      const codes = quantized.some((known) => known.name === name) ? (vector.quantization_config ?? config.quantization_config) : null;
      return [
        name,
        {
          size: vector.size,
          distance: vector.distance,
          storage_type: `${vector.on_disk === true ? '' : 'InRam'}${chunked}Mmap`,
          index:
            graph === undefined
              ? { type: 'plain', options: {} }
              : { type: 'hnsw', options: { ...hnsw, m: graph.m, ef_construct: graph.efConstruct } },
          ...(codes === null ? {} : { quantization_config: codes }),
          ...(vector.multivector_config === undefined ? {} : { multivector_config: vector.multivector_config }),
          ...(vector.datatype === undefined ? {} : { datatype: vector.datatype }),
        },
      ];
    }),
  );
}

function sparseConfigs({ kind }: SegmentStats, config: CollectionConfig): Json {
  return Object.fromEntries(
    [...sparseByName(config.params)].map(([name, { index, modifier }]) => {
      const sealed = index?.on_disk === true ? 'Mmap' : 'ImmutableRam';
      return [
        name,
        {
          index: {
            full_scan_threshold: index?.full_scan_threshold ?? null,
            index_type: kind === 'sealed' ? sealed : 'MutableRam',
            datatype: index?.datatype ?? null,
          },
          storage_type: 'mmap',
          ...(modifier === undefined ? {} : { modifier }),
        },
      ];
    }),
  );
}

/** The settings of a collection as the request that makes another one like it. */

import type { ResultOf } from '../../protocols/openapi/operations.js';

type Info = ResultOf<'get_collection'>;

export interface CopiedSettings {
  /** Body of the request that creates the collection. */
  readonly create: Record<string, unknown>;
  /** What only a change can set; null: nothing. */
  readonly change: Record<string, unknown> | null;
  /** Bodies that make the payload indexes. */
  readonly indexes: readonly { readonly field_name: string; readonly field_schema: unknown }[];
}

/** Fields of `config.params` that go to a request as they are. */
const PARAMS = [
  'vectors',
  'sparse_vectors',
  'shard_number',
  'sharding_method',
  'replication_factor',
  'write_consistency_factor',
  'on_disk_payload',
] as const;
const CHANGED_PARAMS = ['read_fan_out_factor', 'read_fan_out_delay_ms'] as const;

export function copiedSettings({ config, payload_schema: schema }: Pick<Info, 'config' | 'payload_schema'>): CopiedSettings {
  const params = config.params as Record<string, unknown>;
  const { hnsw_config, metadata, optimizer_config, quantization_config, strict_mode_config, wal_config } = config as Record<
    string,
    unknown
  >;
  const create = {
    ...Object.fromEntries(PARAMS.map((name) => [name, params[name]])),
    hnsw_config,
    optimizers_config: optimizer_config,
    wal_config,
    quantization_config,
    strict_mode_config,
    metadata,
  };
  const change = withoutNulls(Object.fromEntries(CHANGED_PARAMS.map((name) => [name, params[name]])));
  return {
    create: withoutNulls(create),
    change: Object.keys(change).length === 0 ? null : { params: change },
    indexes: Object.entries((schema ?? {}) as Record<string, { data_type: string; params?: object | null }>).map(([name, index]) => ({
      field_name: name,
      field_schema: index.params == null ? index.data_type : withoutNulls({ type: index.data_type, ...index.params }),
    })),
  };
}

type Alias = ResultOf<'get_collections_aliases'>['aliases'][number];

/** Which aliases of a source a copy can get, and which are names of other collections already, and of which. here: all aliases and collections there. */
export function freeAliases(
  aliases: readonly Alias[],
  here: readonly Alias[],
  collections: readonly { readonly name: string }[],
  copy: string,
): { readonly free: readonly string[]; readonly taken: ReadonlyMap<string, string> } {
  const meant = new Map(here.map(({ alias_name: alias, collection_name: name }) => [alias, name]));
  for (const { name } of collections) meant.set(name, name);
  const names = aliases.map(({ alias_name: alias }) => alias);
  const taken = names.flatMap((alias): [string, string][] => {
    const name = meant.get(alias);
    return name === undefined || name === copy ? [] : [[alias, name]];
  });
  return { free: names.filter((alias) => !meant.has(alias)), taken: new Map(taken) };
}

/** Objects without members that are null, at any depth but within lists. */
function withoutNulls(value: Record<string, unknown>): Record<string, unknown> {
  const kept = Object.entries(value).filter(([, inner]) => inner !== null && inner !== undefined);
  return Object.fromEntries(
    kept.map(([name, inner]) => [
      name,
      typeof inner === 'object' && !Array.isArray(inner) ? withoutNulls(inner as Record<string, unknown>) : inner,
    ]),
  );
}

/** A vector of a collection. */
export interface StoredVector {
  /** '' is the unnamed one. */
  readonly name: string;
  readonly isDense: boolean;
  /** By idf, scores depend on all points, also on those that were replaced and are not cleaned up yet. */
  readonly isWeighed: boolean;
}

export function storedVectors(config: Info['config']): StoredVector[] {
  const { sparse_vectors: sparse, vectors } = config.params as {
    readonly vectors?: Record<string, unknown> | null;
    readonly sparse_vectors?: Record<string, { readonly modifier?: string | null } | null> | null;
  };
  const named = typeof vectors?.size === 'number' ? { '': vectors } : (vectors ?? {});
  const isMulti = (params: unknown): boolean => ((params ?? {}) as { multivector_config?: unknown }).multivector_config != null;
  return [
    ...Object.entries(named).map(([name, params]) => ({ name, isDense: !isMulti(params), isWeighed: false })),
    ...Object.entries(sparse ?? {}).map(([name, params]) => ({ name, isDense: false, isWeighed: params?.modifier === 'idf' })),
  ];
}

/** What the graphs of a vector are built with, as a configuration comes to it, and which segments have all of theirs. */

import {
  type CollectionConfig,
  type FieldSchema,
  type FieldType,
  type HnswConfig,
  listedVector,
  vectorsByName,
} from '../../protocols/model/collection.js';
import { ELEMENT_BYTES, type SubgraphSetting } from './layout.js';
import { elementOf } from './plans.js';

export interface GraphSettings {
  /** Links per row of the upper levels; 0: no graph. */
  readonly m: number;
  readonly efConstruct: number;
}

/** usearch needs two links at least (a level is drawn with 1 / ln m), and a step's neighbours must fit in the scratch. */
const M_MIN = 2;
const M_MAX = 1024;

/** Fewer rows than this are scanned faster than any graph is walked. */
const VALUE_ROWS_MIN = 1000;
/** Types whose values are compared as wholes. */
const VALUE_TYPES: ReadonlySet<FieldType> = new Set(['keyword', 'uuid', 'integer', 'bool']);

/** Graphs of values that share rows lie in different layers. More than these would be much memory for the values that matter least. */
export const LAYERS_MAX = 8;

/** Links per row of the upper levels that a graph is really built with. */
export function connectivity(m: number): number {
  return Math.min(M_MAX, Math.max(M_MIN, m));
}

/** Settings of a vector: its own, else those of the collection. */
export function graphSettings(config: CollectionConfig, vector: string): GraphSettings {
  const { m, ef_construct } = hnswOf(config, vector);
  return { m: m === 0 ? 0 : connectivity(m), efConstruct: Math.max(1, ef_construct) };
}

/**
 * Settings of the sub-graphs of a dense vector; null: it is to have none, as one whose rows lie in lists. Values below `full_scan_threshold` (in bytes of
 * vectors) get none, as a search of so few rows is a scan.
 */
export function subgraphSetting(
  config: CollectionConfig,
  vector: string,
  fields: ReadonlyMap<string, FieldSchema>,
): SubgraphSetting | null {
  const params = vectorsByName(config.params.vectors).get(vector);
  if (params === undefined || params.multivector_config !== undefined || listedVector(config) === vector) return null;
  const { payload_m, ef_construct, full_scan_threshold } = hnswOf(config, vector);
  if (!payload_m) return null;
  const rowBytes = params.size * ELEMENT_BYTES[elementOf(params.datatype)];
  return {
    m: connectivity(payload_m),
    efConstruct: Math.max(1, ef_construct),
    rowsMin: Math.max(VALUE_ROWS_MIN, Math.ceil((full_scan_threshold * 1024) / rowBytes)),
    fields: groupedFields(fields).map(([field, { type, params: own }]) => fieldText(field, type, own?.is_tenant === true)),
  };
}

/** Whether sub-graphs are what is wanted now. Those of fields that have lost their index do no harm. */
export function isMadeFor(made: SubgraphSetting | undefined, wanted: SubgraphSetting | null): boolean {
  if (made === undefined || wanted === null) return made === undefined && wanted === null;
  const { m, efConstruct, rowsMin, fields } = wanted;
  return (
    made.m === m && made.efConstruct === efConstruct && made.rowsMin === rowsMin && fields.every((field) => made.fields.includes(field))
  );
}

/** Indexed fields whose values get graphs, tenants first. */
export function groupedFields(fields: ReadonlyMap<string, FieldSchema>): [string, FieldSchema][] {
  const grouped = [...fields].filter(([, { type, params }]) => VALUE_TYPES.has(type) && params?.enable_hnsw !== false);
  return grouped.sort(([, one], [, other]) => Number(other.params?.is_tenant === true) - Number(one.params?.is_tenant === true));
}

function fieldText(field: string, type: FieldType, isTenant: boolean): string {
  return `${type}${isTenant ? ' tenant' : ''} ${field}`;
}

function hnswOf(config: CollectionConfig, vector: string): HnswConfig {
  return { ...config.hnsw_config, ...vectorsByName(config.params.vectors).get(vector)?.hnsw_config };
}

/** Bytes of vectors below which rows are compared one by one. */
export function fullScanBytes(config: CollectionConfig, vector: string): number {
  return hnswOf(config, vector).full_scan_threshold * 1024;
}

const INDEXING_THRESHOLD_KB = 10_000;

/** Bytes of vectors above which rows without a graph get one; 0: never. */
export function indexingThresholdBytes(config: CollectionConfig): number {
  return (config.optimizer_config.indexing_threshold ?? INDEXING_THRESHOLD_KB) * 1024;
}

/** Whether every dense vector of a segment has its graph, or is configured to have none. Other vectors have no graphs. */
export function isIndexed(
  segment: { readonly kind: 'appendable' | 'sealed'; readonly graphs: readonly { readonly name: string }[] },
  config: CollectionConfig,
  fields: ReadonlyMap<string, FieldSchema>,
): boolean {
  if (segment.kind === 'appendable') return false;
  const dense = [...vectorsByName(config.params.vectors)].filter(([, { multivector_config }]) => multivector_config === undefined);
  const hasNone = (name: string): boolean => graphSettings(config, name).m === 0 && subgraphSetting(config, name, fields) === null;
  return dense.every(([name]) => segment.graphs.some((graph) => graph.name === name) || hasNone(name));
}

/** Which options of a collection are kept and shown, but not carried out by this release: for the log. */

import { type CollectionConfig, sparseByName, vectorsByName } from '../model/collection.js';

/** One line for each such option that is switched on, starting with its name. */
export function optionsWithoutEffect(config: CollectionConfig): string[] {
  const { hnsw_config: hnsw, params, wal_config: wal } = config;
  const graphs = [hnsw, ...[...vectorsByName(params.vectors).values()].map((vector) => vector.hnsw_config ?? {})];
  const sparse = [...sparseByName(params).values()].map((vector) => vector.index);
  const checks: readonly (readonly [boolean, string])[] = [
    [graphs.some((graph) => graph.inline_storage === true), 'hnsw_config.inline_storage: vectors are kept beside the graph'],
    [graphs.some((graph) => graph.on_disk === true), 'hnsw_config.on_disk: graphs are in memory'],
    [sparse.some((index) => index?.on_disk === true), 'sparse index.on_disk: inverted indexes are in memory'],
    [sparse.some((index) => (index?.datatype ?? 'float32') !== 'float32'), 'sparse index.datatype: values are kept and scored as float32'],
    [wal.wal_segments_ahead > 0, 'wal_config.wal_segments_ahead: files of the log are made when they are needed'],
  ];
  return checks.filter(([on]) => on).map(([, line]) => line);
}

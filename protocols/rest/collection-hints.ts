/** Which options of a collection are kept and shown, but not carried out by this release: for the log. */

import { type CollectionConfig, vectorsByName } from '../model/collection.js';

/** One line for each such option that is switched on, starting with its name. */
export function optionsWithoutEffect(config: CollectionConfig): string[] {
  const { hnsw_config: hnsw, params, strict_mode_config: strictMode } = config;
  const graphs = [hnsw, ...[...vectorsByName(params.vectors).values()].map((vector) => vector.hnsw_config ?? {})];
  const checks: readonly (readonly [boolean, string])[] = [
    [params.shard_number > 1, 'shard_number: this node keeps all points in one shard'],
    [graphs.some((graph) => graph.inline_storage === true), 'hnsw_config.inline_storage: vectors are kept beside the graph'],
    [strictMode?.enabled === true, 'strict_mode_config: its limits are not checked'],
  ];
  return checks.filter(([on]) => on).map(([, line]) => line);
}

/** What the graph of a vector is built with, as a configuration comes to it. */

import { type CollectionConfig, vectorsByName } from '../../protocols/model/collection.js';

export interface GraphSettings {
  /** Links per row of the upper levels; 0: no graph. */
  readonly m: number;
  readonly efConstruct: number;
}

/** usearch needs two links at least (a level is drawn with 1 / ln m), and a step's neighbours must fit in the scratch. */
const M_MIN = 2;
const M_MAX = 1024;

/** Links per row of the upper levels that a graph is really built with. */
export function connectivity(m: number): number {
  return Math.min(M_MAX, Math.max(M_MIN, m));
}

/** Settings of a vector: its own, else those of the collection. */
export function graphSettings(config: CollectionConfig, vector: string): GraphSettings {
  const { m, ef_construct } = { ...config.hnsw_config, ...vectorsByName(config.params.vectors).get(vector)?.hnsw_config };
  return { m: m === 0 ? 0 : connectivity(m), efConstruct: Math.max(1, ef_construct) };
}

/**
 * A collection's configuration as this node carries it out: what the node's settings say of optimizers (`storage.optimizers_overwrite`) goes
 * before the collection's own settings, in new and in older collections. The collection's own ones are kept and shown, and go for other nodes.
 */

import type { CollectionConfig, OptimizersConfig } from '../../protocols/model/collection.js';

/** What the node's settings name. */
export type OptimizersOverwrite = Readonly<Partial<OptimizersConfig>>;

export const NO_OVERWRITE: OptimizersOverwrite = {};

/** The very same configuration where nothing is overwritten. */
export function ownConfig(config: CollectionConfig, overwrite: OptimizersOverwrite): CollectionConfig {
  if (Object.keys(overwrite).length === 0) return config;
  return { ...config, optimizer_config: { ...config.optimizer_config, ...overwrite } };
}

import type { NodeApi } from '../requests/node-api.js';
import { type NodeOptions, prepareNode } from './node-base.js';
import { startSingleNode } from './single-node.js';

/** Starts the node's actors; collections are being opened when it returns (see `NodeApi.whenReady`). */
export async function startNode(options: NodeOptions): Promise<NodeApi> {
  const base = await prepareNode(options);
  if (options.cluster == null) return startSingleNode(base);
  // Loaded here, since a node of its own needs none of it.
  const { startClusterNode } = await import('./cluster-node.js');
  return startClusterNode(base, options.cluster);
}

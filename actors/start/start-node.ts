import type { NodeApi } from '../requests/node-api.js';
import { startClusterNode } from './cluster-node.js';
import { type NodeOptions, prepareNode } from './node-base.js';
import { startSingleNode } from './single-node.js';

/** Starts the node's actors; collections are being opened when it returns (see `NodeApi.whenReady`). */
export async function startNode(options: NodeOptions): Promise<NodeApi> {
  const base = await prepareNode(options);
  return options.cluster == null ? startSingleNode(base) : startClusterNode(base, options.cluster);
}

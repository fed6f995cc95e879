/** Operations on collections and on the node itself: from a decoded request to what is answered. */

import type { NodeApi } from '../../actors/start/node-api.js';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { openApiDocument } from '../../protocols/openapi/document.js';
import { decodeAliasActions } from '../../protocols/rest/aliases.js';
import { optionsWithoutEffect } from '../../protocols/rest/collection-hints.js';
import { applyCollectionChange, decodeCreateCollection, decodeUpdateCollection } from '../../protocols/rest/collections.js';
import {
  checkNewCollectionName,
  flagParameter,
  type QueryParameters,
  textParameter,
  unsigned,
  updateParameters,
} from '../../protocols/rest/parameters.js';
import { addVector, decodeNewVector, removeVector } from '../../protocols/rest/vector-names.js';
import { type HttpAnswer, result } from '../answer.js';
import { collectionName, type Handler, type NodeRequest, settingsOf, timeoutMsOf, upToDate } from '../node-request.js';
import { agreedState } from '../reports/cluster-report.js';
import { metricsText } from '../reports/metrics.js';
import { telemetryReport } from '../reports/telemetry.js';
import { type NodeOperation, OPERATIONS } from '../routes.js';
import { API_VERSION, type DoorServices } from '../services.js';
import { CLUSTER_HANDLERS } from './cluster.js';
import { DOCS_PAGE, DOCS_POLICY } from './docs-page.js';

const OPTIMIZATION_PARTS = ['queued', 'completed', 'idle_segments'] as const;
const COMPLETED_DEFAULT = 16;

/** One handler per node operation. Each throws errors of the catalogue. */
export const NODE_HANDLERS: Readonly<Record<NodeOperation, Handler>> = {
  root: ({ identity }) => {
    const troupe = { version: identity.version };
    return {
      kind: 'json',
      value: { title: 'troupe - vector database', version: API_VERSION, commit: `troupe-${identity.version}`, troupe },
    };
  },
  alive: () => ({ kind: 'text', status: 200, text: 'healthz check passed' }),
  ready: ({ notReady }) => {
    const reason = notReady();
    if (reason === null) return { kind: 'text', status: 200, text: 'all shards are ready' };
    return { kind: 'text', status: 503, text: `some shards are not ready: ${reason}` };
  },

  telemetry: (services, { query }) => {
    const options = { detailsLevel: unsigned(query, 'details_level') ?? 0, anonymize: flagParameter(query, 'anonymize') };
    flagParameter(query, 'per_collection');
    return result(telemetryReport(services, options));
  },
  metrics: (services, { query }) => {
    const options = { anonymize: flagParameter(query, 'anonymize') };
    flagParameter(query, 'per_collection');
    return { kind: 'text', status: 200, text: metricsText(services, options) };
  },
  openapi: ({ identity }) => ({ kind: 'json', value: openApiDocument(OPERATIONS, identity.version) }),
  docs: () => ({ kind: 'page', html: DOCS_PAGE, policy: DOCS_POLICY }),
  // Nothing reports issues yet: they are about missing indexes under strict mode.
  issues: () => result({ issues: [] }),
  clearIssues: () => result(true),

  ...CLUSTER_HANDLERS,

  listCollections: async ({ node }, { query }) => {
    await upToDate(node, query);
    return result({ collections: node.listCollections().map((name) => ({ name })) });
  },
  collectionInfo: async ({ node }, { path, query }) => {
    await upToDate(node, query);
    return result(await node.wholeInfo(collectionName(path)));
  },
  createCollection,
  updateCollection,
  createVectorName: async (services, { path, query, body }) => {
    const vector = decodeNewVector(path.vector_name as string, settingsOf(body));
    return changeVectors(services, path, query, (config) => addVector(config, vector));
  },
  deleteVectorName: (services, { path, query }) =>
    changeVectors(services, path, query, (config) => removeVector(config, path.vector_name as string)),
  deleteCollection: async ({ node }, { path, query }) => {
    const timeoutMs = timeoutMsOf(query);
    return result(await node.deleteCollection(collectionName(path), timeoutMs));
  },
  collectionExists: async ({ node }, { path, query }) => {
    await upToDate(node, query);
    return result({ exists: node.exists(collectionName(path)) });
  },
  optimizations,
  collectionAliases: async ({ node }, { path, query }) => {
    await upToDate(node, query);
    return result({ aliases: node.aliases(collectionName(path)) });
  },
  aliases: async ({ node }, { query }) => {
    await upToDate(node, query);
    return result({ aliases: node.aliases(null) });
  },
  changeAliases: async ({ node }, { query, body }) => {
    const timeoutMs = timeoutMsOf(query);
    return result(await node.changeAliases(decodeAliasActions(settingsOf(body)), timeoutMs));
  },
};

/** Answers as an update of points does, with the number of the last one. */
async function changeVectors(
  { node }: DoorServices,
  path: NodeRequest['path'],
  query: QueryParameters,
  change: (config: CollectionConfig) => CollectionConfig,
): Promise<HttpAnswer> {
  const { timeoutSeconds } = updateParameters(query);
  const name = collectionName(path);
  await node.updateCollection(name, change, timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000);
  return result({ operation_id: Math.max(0, ...node.stats(name).map(({ appliedOperation }) => appliedOperation)), status: 'completed' });
}

async function createCollection(services: DoorServices, { path, query, body }: NodeRequest): Promise<HttpAnswer> {
  const name = collectionName(path);
  const timeoutMs = timeoutMsOf(query);
  checkNewCollectionName(name);
  const { node, maxCollections } = services;
  const config = decodeCreateCollection(settingsOf(body), services.defaults, peerCount(node));
  if (maxCollections !== null && !node.exists(name) && node.listCollections().length >= maxCollections) {
    throw new TroupeError('wrongInput', `Can't create collection with name ${name}. Max collections limit reached: ${maxCollections}`);
  }
  await node.createCollection(name, config, timeoutMs);
  warnOfHints(services, name, config);
  return result(true);
}

async function updateCollection(services: DoorServices, { path, query, body }: NodeRequest): Promise<HttpAnswer> {
  const { node } = services;
  const name = collectionName(path);
  const timeoutMs = timeoutMsOf(query);
  const change = decodeUpdateCollection(settingsOf(body));
  await node.updateCollection(name, (config) => applyCollectionChange(config, change), timeoutMs);
  // Somebody else may have deleted it since.
  if (node.exists(name)) warnOfHints(services, name, node.info(name).config);
  return result(true);
}

/** Peers of the cluster; null on a node of its own. Errors: `unavailable` as long as it is in none. */
function peerCount({ cluster }: NodeApi): number | null {
  return cluster === null ? null : agreedState(cluster).membership.length;
}

function warnOfHints({ log, node }: DoorServices, name: string, config: CollectionConfig): void {
  for (const line of optionsWithoutEffect(config)) log.warn(`collection ${name}: an option has no effect in this release: ${line}`);
}

/** The optimizations report with the parts that `with` names. */
function optimizations({ node }: DoorServices, { path, query }: NodeRequest): HttpAnswer {
  const parts = (textParameter(query, 'with') ?? '').split(',').filter((part) => part !== '');
  const unknown = parts.find((part) => !(OPTIMIZATION_PARTS as readonly string[]).includes(part));
  if (unknown !== undefined) throw new TroupeError('wrongInput', `Unknown field in 'with' parameter: ${unknown}`);
  const completedLimit = unsigned(query, 'completed_limit') ?? COMPLETED_DEFAULT;
  const report = node.optimizations(collectionName(path));
  const { queued, completed, idle_segments, ...always } = report;
  return result({
    ...always,
    ...(parts.includes('queued') ? { queued } : {}),
    ...(parts.includes('completed') ? { completed: completed.slice(0, completedLimit) } : {}),
    ...(parts.includes('idle_segments') ? { idle_segments } : {}),
  });
}

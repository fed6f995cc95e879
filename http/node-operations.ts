/** Operations on collections and on the node itself: from a decoded request to what is answered. */

import type { Log } from '../actors/runtime/ports.js';
import { TroupeError } from '../protocols/errors.js';
import { parseJson } from '../protocols/json.js';
import type { CollectionConfig } from '../protocols/model/collection.js';
import type { JsonValue } from '../protocols/model/payload.js';
import { openApiDocument } from '../protocols/openapi/document.js';
import { decodeAliasActions } from '../protocols/rest/aliases.js';
import { optionsWithoutEffect } from '../protocols/rest/collection-hints.js';
import { applyCollectionChange, decodeCreateCollection, decodeUpdateCollection } from '../protocols/rest/collections.js';
import {
  checkNewCollectionName,
  collectionTimeout,
  flag,
  type QueryParameters,
  text,
  unsigned,
  updateParameters,
} from '../protocols/rest/parameters.js';
import { addVector, decodeNewVector, removeVector } from '../protocols/rest/vector-names.js';
import type { Answer } from './answer.js';
import { DOCS_PAGE, DOCS_POLICY } from './docs-page.js';
import { metricsText } from './metrics.js';
import { type NodeOperation, OPERATIONS } from './operations.js';
import { API_VERSION, type DoorServices } from './services.js';
import { telemetryReport } from './telemetry.js';

/** A request for the node; `body` is empty where the method has none. */
export interface NodeRequest {
  readonly path: Readonly<Record<string, string>>;
  readonly query: QueryParameters;
  readonly body: Uint8Array;
}

type Handler = (services: DoorServices, request: NodeRequest) => Answer | Promise<Answer>;

const OPTIMIZATION_PARTS = ['queued', 'completed', 'idle_segments'] as const;
const COMPLETED_DEFAULT = 16;
/** Vectors, aliases and metadata of a collection; points and queries have the door's limit. */
const SETTINGS_BYTES_MAX = 1 << 20;
const PEER_ID_MAX = 0xffff_ffff_ffff_ffffn;

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
  ready: (services) =>
    services.isReady()
      ? { kind: 'text', status: 200, text: 'all shards are ready' }
      : { kind: 'text', status: 503, text: 'some shards are not ready' },

  telemetry: (services, { query }) => {
    const options = { detailsLevel: unsigned(query, 'details_level') ?? 0, anonymize: flag(query, 'anonymize') };
    flag(query, 'per_collection');
    return result(telemetryReport(services, options));
  },
  metrics: (services, { query }) => {
    const options = { anonymize: flag(query, 'anonymize') };
    flag(query, 'per_collection');
    return { kind: 'text', status: 200, text: metricsText(services, options) };
  },
  openapi: ({ identity }) => ({ kind: 'json', value: openApiDocument(OPERATIONS, identity.version) }),
  docs: () => ({ kind: 'page', html: DOCS_PAGE, policy: DOCS_POLICY }),
  // Nothing reports issues yet: they are about missing indexes under strict mode.
  issues: () => result({ issues: [] }),
  clearIssues: () => result(true),

  clusterStatus: () => result({ status: 'disabled' }),
  clusterTelemetry: () => result({ collections: {}, cluster: { enabled: false, peers: {} } }),
  removePeer: (_services, { path }) => {
    const id = path.peer_id as string;
    const known = /^\d{1,20}$/.test(id) && BigInt(id) <= PEER_ID_MAX;
    if (!known) return { kind: 'text', status: 404, text: `can not parse ${JSON.stringify(id)} to a u64` };
    throw new TroupeError('wrongInput', 'Distributed mode disabled.');
  },

  listCollections: ({ node }) => result({ collections: node.listCollections().map((name) => ({ name })) }),
  collectionInfo: ({ node }, { path }) => result(node.info(collectionOf(path))),
  createCollection,
  updateCollection: async ({ log, node }, { path, query, body }) => {
    collectionTimeout(query);
    const change = decodeUpdateCollection(settingsOf(body));
    await node.updateCollection(collectionOf(path), (config) => applyCollectionChange(config, change));
    warnOfHints(log, collectionOf(path), node.info(collectionOf(path)).config);
    return result(true);
  },
  createVectorName: async (services, { path, query, body }) => {
    const vector = decodeNewVector(path.vector_name as string, settingsOf(body));
    return changeVectors(services, path, query, (config) => addVector(config, vector));
  },
  deleteVectorName: (services, { path, query }) =>
    changeVectors(services, path, query, (config) => removeVector(config, path.vector_name as string)),
  deleteCollection: async ({ node }, { path, query }) => {
    collectionTimeout(query);
    return result(await node.deleteCollection(collectionOf(path)));
  },
  collectionExists: ({ node }, { path }) => result({ exists: node.exists(collectionOf(path)) }),
  collectionCluster,
  listShardKeys: ({ node }, { path }) => {
    node.info(collectionOf(path));
    return result({});
  },
  optimizations,
  collectionAliases: ({ node }, { path }) => result({ aliases: node.aliases(collectionOf(path)) }),
  aliases: ({ node }) => result({ aliases: node.aliases(null) }),
  changeAliases: async ({ node }, { query, body }) => {
    collectionTimeout(query);
    return result(await node.changeAliases(decodeAliasActions(settingsOf(body))));
  },
};

/** The value of a body that says how things are set. It is read on the thread that serves all requests, so it may not take long. */
function settingsOf(body: Uint8Array): JsonValue {
  checkSettingsSize(body);
  return parseJson(body);
}

/** Errors: `bodyTooLarge`. */
export function checkSettingsSize({ length }: Uint8Array): void {
  if (length <= SETTINGS_BYTES_MAX) return;
  throw new TroupeError('bodyTooLarge', `settings (${length} bytes) are larger than allowed (limit: ${SETTINGS_BYTES_MAX} bytes).`);
}

/** Answers as an update of points does, with the number of the last one. */
async function changeVectors(
  { node }: DoorServices,
  path: NodeRequest['path'],
  query: QueryParameters,
  change: (config: CollectionConfig) => CollectionConfig,
): Promise<Answer> {
  updateParameters(query);
  const name = collectionOf(path);
  await node.updateCollection(name, change);
  return result({ operation_id: node.stats(name)[0]?.appliedOperation ?? 0, status: 'completed' });
}

async function createCollection(services: DoorServices, { path, query, body }: NodeRequest): Promise<Answer> {
  const name = collectionOf(path);
  collectionTimeout(query);
  checkNewCollectionName(name);
  const config = decodeCreateCollection(settingsOf(body), services.defaults);
  const { node, maxCollections } = services;
  if (maxCollections !== null && !node.exists(name) && node.listCollections().length >= maxCollections) {
    throw new TroupeError('wrongInput', `Can't create collection with name ${name}. Max collections limit reached: ${maxCollections}`);
  }
  await node.createCollection(name, config);
  warnOfHints(services.log, name, config);
  return result(true);
}

function warnOfHints(log: Log, name: string, config: CollectionConfig): void {
  for (const line of optionsWithoutEffect(config)) log.warn(`collection ${name}: an option has no effect in this release: ${line}`);
}

function collectionCluster({ node, identity }: DoorServices, { path }: NodeRequest): Answer {
  const info = node.info(collectionOf(path));
  const shards = Array.from({ length: info.config.params.shard_number }, (_, shard) => ({
    shard_id: shard,
    // One shard holds the points of all.
    points_count: shard === 0 ? info.points_count : 0,
    state: 'Active',
  }));
  return result({ peer_id: identity.peerId, shard_count: shards.length, local_shards: shards, remote_shards: [], shard_transfers: [] });
}

/** The optimizations report with the parts that `with` names. */
function optimizations({ node }: DoorServices, { path, query }: NodeRequest): Answer {
  const parts = (text(query, 'with') ?? '').split(',').filter((part) => part !== '');
  const unknown = parts.find((part) => !(OPTIMIZATION_PARTS as readonly string[]).includes(part));
  if (unknown !== undefined) throw new TroupeError('wrongInput', `Unknown field in 'with' parameter: ${unknown}`);
  const completedLimit = unsigned(query, 'completed_limit') ?? COMPLETED_DEFAULT;
  const report = node.optimizations(collectionOf(path));
  const { queued, completed, idle_segments, ...always } = report;
  return result({
    ...always,
    ...(parts.includes('queued') ? { queued } : {}),
    ...(parts.includes('completed') ? { completed: completed.slice(0, completedLimit) } : {}),
    ...(parts.includes('idle_segments') ? { idle_segments } : {}),
  });
}

function collectionOf(path: Readonly<Record<string, string>>): string {
  return path.collection_name as string;
}

function result(value: unknown): Answer {
  return { kind: 'result', value };
}

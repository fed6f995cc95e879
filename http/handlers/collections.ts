/** Operations on collections and aliases: from a request to its answer. Each throws errors of the catalogue. */

import type { AliasView, NodeApi } from '../../actors/requests/node-api.js';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { decodeAliasActions } from '../../protocols/rest/aliases.js';
import { settingsWithoutEffect } from '../../protocols/rest/collection-hints.js';
import { applyCollectionChange, decodeCreateCollection, decodeUpdateCollection } from '../../protocols/rest/collections.js';
import {
  asksForAgreement,
  checkNewCollectionName,
  type QueryParameters,
  textParameter,
  unsigned,
  updateParameters,
} from '../../protocols/rest/parameters.js';
import { addVector, decodeNewVector, removeVector } from '../../protocols/rest/vector-names.js';
import type { Caller } from '../access/caller.js';
import { grantsOf, mayKnow } from '../access/decide.js';
import { type HttpAnswer, result } from '../context/answer.js';
import { LongObject, longList } from '../context/long-value.js';
import { agreementMsOf, type NodeRequest, settingsOf, timeLeft, timeoutMsOf, upToDate } from '../context/node-request.js';
import type { DoorServices } from '../context/services.js';
import { agreedState } from '../reports/cluster-report.js';

type OnCollection = NodeRequest<'collection_name'>;
type OnVector = NodeRequest<'collection_name' | 'vector_name'>;

const OPTIMIZATION_PARTS = ['queued', 'completed', 'idle_segments'] as const;
const COMPLETED_DEFAULT = 16;

/** The collections that the caller may know of; also on a node that has just started, those that it knew before. */
export async function listCollections({ node }: DoorServices, { caller, query }: NodeRequest): Promise<HttpAnswer> {
  if (asksForAgreement(query)) await upToDate(node, query);
  else await node.cluster?.whenRead(agreementMsOf(query));
  const grants = grantsOf(caller);
  const names = () => (grants === null ? node.listCollections() : node.listCollections().filter((name) => grants.has(name)));
  const value = () => LongObject.of({ collections: longList(names(), (name) => ({ name })) });
  // Those who may see the same share an answer.
  return { kind: 'long', key: grants === null ? 'collections' : null, value };
}

export async function info({ node }: DoorServices, { path, query }: OnCollection): Promise<HttpAnswer> {
  await upToDate(node, query);
  const { status, optimizer_status, ...others } = await node.wholeInfo(path.collection_name, timeoutMsOf(query));
  const warnings = settingsWithoutEffect(others.config).map((message) => ({ message }));
  return result({ status, optimizer_status, ...(warnings.length === 0 ? {} : { warnings }), ...others });
}

export async function exists({ node }: DoorServices, { path, query }: OnCollection): Promise<HttpAnswer> {
  await upToDate(node, query);
  return result({ exists: node.exists(path.collection_name) });
}

export async function create(services: DoorServices, request: OnCollection): Promise<HttpAnswer> {
  const { path, query } = request;
  const name = path.collection_name;
  checkNewCollectionName(name);
  const { node } = services;
  const timeoutMs = await timeLeft(services, query);
  const config = decodeCreateCollection(settingsOf(request), services.defaults, peerCount(node));
  checkCollectionLimit(services, name);
  services.disk.require(0);
  await node.createCollection(name, config, timeoutMs);
  warnOfHints(services, name, config);
  return result(true);
}

/** Whether there may be a collection of this name. Errors: `wrongInput` beyond `storage.max_collections`. */
export function checkCollectionLimit({ maxCollections, node }: DoorServices, name: string): void {
  if (maxCollections === null || node.exists(name) || node.listCollections().length < maxCollections) return;
  throw new TroupeError('badRequest', `Can't create collection with name ${name}. Max collections limit reached: ${maxCollections}`);
}

export async function update(services: DoorServices, request: OnCollection): Promise<HttpAnswer> {
  const { path, query } = request;
  const { node } = services;
  const name = path.collection_name;
  const change = decodeUpdateCollection(settingsOf(request));
  const timeoutMs = await timeLeft(services, query);
  await node.updateCollection(name, (config) => applyCollectionChange(config, change), timeoutMs);
  // Somebody else may have deleted it since.
  if (node.exists(name)) warnOfHints(services, name, node.info(name).config);
  return result(true);
}

export async function remove(services: DoorServices, { path, query }: OnCollection): Promise<HttpAnswer> {
  const timeoutMs = await timeLeft(services, query);
  return result(await services.node.deleteCollection(path.collection_name, timeoutMs));
}

export async function createVectorName(services: DoorServices, request: OnVector): Promise<HttpAnswer> {
  const { path, query } = request;
  const vector = decodeNewVector(path.vector_name, settingsOf(request));
  return changeVectors(services, path.collection_name, query, (config) => addVector(config, vector));
}

export function deleteVectorName(services: DoorServices, { path, query }: OnVector): Promise<HttpAnswer> {
  return changeVectors(services, path.collection_name, query, (config) => removeVector(config, path.vector_name));
}

export async function aliasesOf({ node }: DoorServices, { caller, path, query }: OnCollection): Promise<HttpAnswer> {
  await upToDate(node, query);
  return result({ aliases: knownAliases(caller, node.aliases(path.collection_name)) });
}

export async function allAliases({ node }: DoorServices, { caller, query }: NodeRequest): Promise<HttpAnswer> {
  await upToDate(node, query);
  return result({ aliases: knownAliases(caller, node.aliases(null)) });
}

/** Those of which the caller may know both names. */
function knownAliases(caller: Caller, aliases: readonly AliasView[]): readonly AliasView[] {
  return aliases.filter(({ alias_name, collection_name }) => mayKnow(caller, alias_name) && mayKnow(caller, collection_name));
}

export async function handleAliasChanges(services: DoorServices, request: NodeRequest): Promise<HttpAnswer> {
  const actions = decodeAliasActions(settingsOf(request));
  return result(await services.node.changeAliases(actions, await timeLeft(services, request.query)));
}

/** The optimizations report with the parts that `with` names. */
export async function optimizations({ node }: DoorServices, { path, query }: OnCollection): Promise<HttpAnswer> {
  const parts = (textParameter(query, 'with') ?? '').split(',').filter((part) => part !== '');
  const unknown = parts.find((part) => !(OPTIMIZATION_PARTS as readonly string[]).includes(part));
  if (unknown !== undefined) throw new TroupeError('wrongInput', `Unknown field in 'with' parameter: ${unknown}`);
  const completedLimit = unsigned(query, 'completed_limit') ?? COMPLETED_DEFAULT;
  const report = await node.wholeOptimizations(path.collection_name);
  const { queued, completed, idle_segments, ...always } = report;
  return result({
    ...always,
    ...(parts.includes('queued') ? { queued } : {}),
    ...(parts.includes('completed') ? { completed: completed.slice(0, completedLimit) } : {}),
    ...(parts.includes('idle_segments') ? { idle_segments } : {}),
  });
}

/** Answers as an update of points does, with the number of the last one. */
async function changeVectors(
  { node }: DoorServices,
  name: string,
  query: QueryParameters,
  change: (config: CollectionConfig) => CollectionConfig,
): Promise<HttpAnswer> {
  const { timeoutSeconds } = updateParameters(query);
  await node.updateCollection(name, change, timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000);
  return result({ operation_id: Math.max(0, ...node.stats(name).map(({ appliedOperation }) => appliedOperation)), status: 'completed' });
}

/** Peers of the cluster; null on a node of its own. Errors: `unavailable` as long as it is in none. */
function peerCount({ cluster }: NodeApi): number | null {
  return cluster === null ? null : agreedState(cluster).membership.length;
}

function warnOfHints({ log, node }: DoorServices, name: string, config: CollectionConfig): void {
  for (const line of settingsWithoutEffect(config)) log.warn(`collection ${name}: ${line}`);
}

/** Small values that all nodes of a cluster agree on, under keys of the users' own: `/cluster/metadata/keys`. */

import { parseJson, stringifyJson } from '../../protocols/json.js';
import { flagParameter } from '../../protocols/rest/parameters.js';
import { type HttpAnswer, result } from '../context/answer.js';
import { agreementMsLeft, type NodeRequest, settingsOf, upToDate } from '../context/node-request.js';
import type { DoorServices } from '../context/services.js';
import { agreedState } from '../reports/cluster-report.js';
import { clusterOf } from './cluster.js';

type OnKey = NodeRequest<'key'>;

export async function listMetadata({ node }: DoorServices, { query }: NodeRequest): Promise<HttpAnswer> {
  await upToDate(node, query);
  return result([...agreedState(clusterOf(node)).metadata.keys()].sort());
}

/** The value of a key; null where there is none. */
export async function getMetadata({ node }: DoorServices, { path, query }: OnKey): Promise<HttpAnswer> {
  await upToDate(node, query);
  const value = agreedState(clusterOf(node)).metadata.get(path.key);
  return result(value === undefined ? null : parseJson(Buffer.from(value)));
}

export async function putMetadata(services: DoorServices, request: OnKey): Promise<HttpAnswer> {
  return setMetadata(services, request, stringifyJson(settingsOf(request)));
}

export async function deleteMetadata(services: DoorServices, request: OnKey): Promise<HttpAnswer> {
  return setMetadata(services, request, null);
}

/** With `wait` the answer comes when every node that can be reached has the change, else when it is agreed on. */
async function setMetadata(services: DoorServices, { path, query }: OnKey, value: string | null): Promise<HttpAnswer> {
  const wait = flagParameter(query, 'wait');
  const cluster = clusterOf(services.node);
  const timeoutMs = await agreementMsLeft(services, query);
  return result(await cluster.change({ kind: 'setMetadata', key: path.key, value }, timeoutMs, wait));
}

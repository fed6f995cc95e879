/** Requests for the node and its collections, and what their handlers read of them. */

import type { NodeApi } from '../../actors/requests/node-api.js';
import { TroupeError } from '../../protocols/errors.js';
import { parseJson } from '../../protocols/json.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { asksForAgreement, collectionTimeout, type QueryParameters } from '../../protocols/rest/parameters.js';
import type { Caller } from '../access/caller.js';
import type { HttpAnswer } from './answer.js';
import type { DoorServices } from './services.js';

/** Names: what the path has in braces. `body` is empty where the method has none. */
export interface NodeRequest<Names extends string = never> {
  readonly path: Readonly<Record<Names, string>>;
  readonly query: QueryParameters;
  readonly body: Uint8Array;
  /** Access was decided: what an answer shows may depend on the caller. */
  readonly caller: Caller;
  /** Gets the value of the body before it is decoded. */
  readonly see?: (body: JsonValue) => void;
}

/** Throws errors of the catalogue. */
export type Handler<Names extends string = never> = (
  services: DoorServices,
  request: NodeRequest<Names>,
) => HttpAnswer | Promise<HttpAnswer>;

/** Vectors, aliases and metadata of a collection; points and queries have the door's limit. */
const SETTINGS_BYTES_MAX = 1 << 20;
/** Time to agree for a request that does not say how long it waits. */
const AGREEMENT_MS = 10_000;

/** The value of a body that says how things are set. It is read on the thread that serves all requests, so it may not take long. */
export function settingsOf({ body, see }: Pick<NodeRequest, 'body' | 'see'>): JsonValue {
  checkSettingsSize(body);
  // Looked at closely however long it is: what reads settings goes as deep as they do.
  const value = parseJson(body, 0);
  see?.(value);
  return value;
}

/** Errors: `bodyTooLarge`. */
export function checkSettingsSize({ length }: Uint8Array): void {
  if (length <= SETTINGS_BYTES_MAX) return;
  throw new TroupeError('bodyTooLarge', `settings (${length} bytes) are larger than allowed (limit: ${SETTINGS_BYTES_MAX} bytes).`);
}

/** `timeout` in milliseconds; undefined when it is not given. */
export function timeoutMsOf(query: QueryParameters): number | undefined {
  const seconds = collectionTimeout(query);
  return seconds === undefined ? undefined : seconds * 1000;
}

/** As `timeoutMsOf`, with a default. */
export function agreementMsOf(query: QueryParameters): number {
  return timeoutMsOf(query) ?? AGREEMENT_MS;
}

/**
 * With `consistency`, waits until this node knows all that its cluster had agreed on when it was asked; else what is read may be
 * a little old, though no older than what was agreed before this node started. Errors: `malformedParameter`; `unavailable`, `timeout`.
 */
export async function upToDate({ cluster }: NodeApi, query: QueryParameters): Promise<void> {
  if (asksForAgreement(query)) await cluster?.barrier(agreementMsOf(query));
  else await cluster?.whenStarted(agreementMsOf(query));
}

/**
 * Waits while a node of a cluster has just started, so that a change of settings is not refused for that. Returns what is left of the
 * request's time in milliseconds; undefined where it has said none. Errors: `unavailable` when the time is over.
 */
export async function timeLeft({ node, nowMs }: DoorServices, query: QueryParameters): Promise<number | undefined> {
  const timeoutMs = timeoutMsOf(query);
  const held = node.cluster?.whenStarted(agreementMsOf(query)) ?? null;
  if (held === null) return timeoutMs;
  const endMs = nowMs() + agreementMsOf(query);
  await held;
  return Math.max(1, endMs - nowMs());
}

/** As `timeLeft`, with a default. */
export async function agreementMsLeft(services: DoorServices, query: QueryParameters): Promise<number> {
  return (await timeLeft(services, query)) ?? AGREEMENT_MS;
}

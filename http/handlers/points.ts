/** Requests for the points of one collection, as the engine takes them from each door. */

import type { ReadConsistency } from '../../protocols/model/cluster.js';
import type { CallTrace } from '../../protocols/model/explanation.js';
import type { UnknownFields } from '../../protocols/model/unknown-fields.js';
import { noUsage } from '../../protocols/model/usage.js';
import type { HeavyRead, RawRequest } from '../../storage/threads/messages.js';
import type { Caller } from '../access/caller.js';
import { grantsOf } from '../access/decide.js';
import type { DoorServices } from '../context/services.js';
import type { SlowRequests } from '../context/slow-requests.js';

/** What a door has read of a request. */
export interface PointsCall {
  readonly path: Readonly<Record<string, string>>;
  /** Of REST; empty over gRPC. */
  readonly query: RawRequest['query'];
  /** In a buffer of its own, which goes to another thread; null: the method has none. */
  readonly body: Uint8Array | null;
  /** The message that the body is; left out for JSON. */
  readonly message?: string;
  readonly caller: Caller;
  readonly consistency: ReadConsistency | undefined;
  readonly timeoutSeconds: number | undefined;
  /** Whether its address asks for an explanation; its body may, too. */
  readonly explain?: boolean | undefined;
  /** Of a call that is part of a trace. */
  readonly trace?: CallTrace | undefined;
  /** When the client stops waiting, by `nowMs` of the services; left out where that is not known. */
  readonly deadlineMs?: number;
  /** Milliseconds that the client has waited for this node already: its time counts from then on. */
  readonly heldMs?: number | undefined;
  /** For a read that quick ones should not wait for, as far as that is known. */
  readonly heavy?: HeavyRead | undefined;
  /** As in `RawRequest`; 0 as none. */
  readonly paid?: number | undefined;
  /** As in `RawRequest`. */
  readonly unknownFields?: UnknownFields | undefined;
}

/** Requests that take long are noted, with their plan. */
export interface PointsServices extends Pick<DoorServices, 'hardwareReporting' | 'nowMs'> {
  readonly slow: Pick<SlowRequests, 'fromMs'>;
}

const DEFAULT_TIMEOUT_MS = 60_000;

/** With the deadline of the request, and where this node measures, with the counters of what it costs. */
export function pointsRequest({ hardwareReporting, nowMs, slow }: PointsServices, call: PointsCall): RawRequest {
  const {
    body,
    caller,
    consistency,
    explain,
    deadlineMs = Number.POSITIVE_INFINITY,
    heavy,
    heldMs = 0,
    message,
    paid = 0,
    path,
    query,
    timeoutSeconds,
    trace,
    unknownFields,
  } = call;
  const ownMs = nowMs() - Math.floor(heldMs) + (timeoutSeconds === undefined ? DEFAULT_TIMEOUT_MS : timeoutSeconds * 1000);
  const grants = grantsOf(caller);
  const told = { wanted: explain === true, explanation: null, planFromMs: slow.fromMs };
  // Member by member: copies of objects that are mostly empty cost more than all else here.
  const request: { -readonly [Name in keyof RawRequest]: RawRequest[Name] } = {
    path,
    query,
    body,
    deadlineMs: Math.min(ownMs, deadlineMs),
    explain: trace === undefined ? told : { ...told, trace },
  };
  if (message !== undefined) request.message = message;
  if (timeoutSeconds !== undefined) request.timeoutSeconds = timeoutSeconds;
  if (consistency !== undefined) request.consistency = consistency;
  if (heavy !== undefined) request.heavy = heavy;
  if (paid !== 0) request.paid = paid;
  if (grants !== null) request.grants = grants;
  if (unknownFields !== undefined) request.unknownFields = unknownFields;
  if (hardwareReporting) request.usage = noUsage();
  return request;
}

/** The records of the audit log: who asked for what, from where, and what came of it. Never a key, a token, a body or a query string. */

import type { Caller } from '../access/caller.js';

/** An operation that was asked for. */
export interface AuditedCall {
  readonly requestId: string;
  readonly caller: Caller;
  /** The address of the client. */
  readonly from: string;
  /** The address of the proxy that named the client; null: nobody did, or is believed. */
  readonly via: string | null;
  readonly protocol: 'rest' | 'grpc';
  /** A name of `routes.ts`; `unknown`: there is no such path. */
  readonly operation: string;
  /** As the request names it; null: the operation has none. */
  readonly collection: string | null;
}

/** What came of it. */
export interface AuditedEnd {
  /** Why the caller may not do it; null: it may. */
  readonly denied: string | null;
  /** Of REST (200) or gRPC (0); null: the client was gone before its answer. */
  readonly status: number | null;
  readonly milliseconds: number;
}

/** A record, as `troupe audit` reads it. */
export interface AuditRecord {
  readonly time: string;
  readonly request_id: string;
  readonly who: Readonly<Record<string, string>>;
  readonly from: string;
  readonly via?: string;
  readonly protocol: string;
  readonly operation: string;
  readonly collection: string | null;
  readonly access: 'allowed' | 'denied';
  readonly reason?: string;
  readonly status: number | null;
  readonly duration_ms: number;
}

/** Longer texts that a client chooses are cut. */
const TEXT_MAX = 256;
/** Texts that JSON has as they are. */
const PLAIN = /^[\w .:;,/@+()'*-]*$/;

/** The line of a record, with its line end. timeMs: when it was answered, since the epoch. */
export function recordLine(timeMs: number, call: AuditedCall, end: AuditedEnd): string {
  const { caller, collection, from, operation, protocol, requestId, via } = call;
  const { denied, milliseconds, status } = end;
  const proxy = via === null ? '' : `,"via":${quoted(via)}`;
  const access = denied === null ? '"allowed"' : `"denied","reason":${quoted(denied)}`;
  return (
    `{"time":"${isoTime(timeMs)}","request_id":${quoted(requestId)},"who":${whoText(caller)},"from":${quoted(from)}${proxy}` +
    `,"protocol":"${protocol}","operation":"${operation}","collection":${collection === null ? 'null' : quoted(collection)}` +
    `,"access":${access},"status":${status},"duration_ms":${Math.round(milliseconds * 1000) / 1000}}\n`
  );
}

/** The line that tells how many records were lost before it. */
export function lossLine(timeMs: number, records: number): string {
  return `{"time":"${isoTime(timeMs)}","event":"records_lost","records":${records}}\n`;
}

/** Callers that come again are the same objects. */
const knownTexts = new WeakMap<Caller, string>();

function whoText(caller: Caller): string {
  const known = knownTexts.get(caller);
  if (known !== undefined) return known;
  const text = JSON.stringify(callerFacts(caller));
  knownTexts.set(caller, text);
  return text;
}

/** What kind of caller it is, and its name. */
export function callerFacts(caller: Caller): Readonly<Record<string, string>> {
  switch (caller.kind) {
    case 'anyone':
    case 'program':
      return { kind: caller.kind };
    case 'stranger':
      return { kind: 'stranger', reason: caller.reason };
    case 'key':
      return { kind: 'key', setting: caller.setting };
    case 'token': {
      const { fingerprint: token, subject } = caller;
      return subject === null ? { kind: 'token', token } : { kind: 'token', subject: subject.slice(0, TEXT_MAX), token };
    }
    default:
      return caller satisfies never;
  }
}

function quoted(text: string): string {
  const short = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
  return PLAIN.test(short) ? `"${short}"` : JSON.stringify(short);
}

let lastMs = Number.NaN;
let lastText = '';

/** Made once for all records of a millisecond. */
function isoTime(timeMs: number): string {
  if (timeMs !== lastMs) {
    lastMs = timeMs;
    lastText = new Date(timeMs).toISOString();
  }
  return lastText;
}

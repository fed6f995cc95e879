/** Messages between the REST server of a reader's thread and the main thread. */

import type { CallTrace } from '../../../protocols/model/explanation.js';
import type { HeavyRead } from '../../../storage/threads/messages.js';
import type { AccessSettings } from '../../access/known-callers.js';
import type { AuditSettings } from '../../audit/audit-log.js';
import type { GateData } from '../../context/client-gate.js';
import type { CollectionBatch } from '../../context/collection-stats.js';
import type { ServerNews, ServerOrder } from '../../context/reader-servers.js';
import type { SlowRequest } from '../../context/slow-requests.js';
import type { DoorTls } from '../../context/tls-sockets.js';
import type { UnknownFieldCount } from '../../context/unknown-fields.js';
import type { TraceSettings } from '../../otlp/trace-log.js';
import type { HeadRow } from '../calls/check-head.js';
import type { RestReply } from '../calls/reply.js';

/** A row of the table of routes, without what carries it out. A reader may answer rows of kind `read` by itself. */
export type DoorRow = HeadRow & {
  /** Of the operation. */
  readonly name: string;
  /** The answer is always the same, as long as the main thread works. */
  readonly isFixed: boolean;
};

export interface ReaderDoorSettings {
  readonly host: string;
  /** Shared by all readers. */
  readonly port: number;
  /** Null: connections are plain. */
  readonly tls: DoorTls | null;
  readonly maxBodyBytes: number;
  /** Null: there are no keys. */
  readonly access: AccessSettings | null;
  /** Null: there is no audit log. */
  readonly audit: AuditSettings | null;
  /** Null: no traces are sent. */
  readonly traces: TraceSettings | null;
  /** Answers from this length on are packed for clients that accept it; null: none. */
  readonly packFromBytes: number | null;
  /** Unknown fields of bodies are errors. */
  readonly refuseUnknown: boolean;
  /** In the order of `ROUTES`. */
  readonly rows: readonly DoorRow[];
  /** The socket of the main thread's HTTP server, which takes connections over. */
  readonly handOnPath: string;
  /** Which clients may connect; null: all. */
  readonly clients: GateData | null;
  /** For `SharedCounts`. */
  readonly counts: SharedArrayBuffer;
  /** See `SlowRequests`. */
  readonly slowFromMs: number;
}

export type ToDoor =
  /** reply: to the call of this id; null: there is none. trace: how it was carried out, for the trace of the call. */
  { readonly kind: 'reply'; readonly id: number; readonly reply: RestReply | null; readonly trace: CallTrace | null } | ServerOrder;

/** A plain request for the main thread. at: its row's place. query: the query string. */
export interface DoorCall {
  readonly kind: 'call';
  readonly id: number;
  readonly at: number;
  readonly url: string;
  readonly path: Readonly<Record<string, string>>;
  readonly query: string;
  /** The main thread finds the caller itself. */
  readonly credential: string | null;
  readonly body: Uint8Array;
  /** Headers with ids. */
  readonly fields: Readonly<Record<string, string>>;
  /** As in `FastRequest`, and when the call was made (`steadyNowMs()`): the client also waits until the main thread takes it. */
  readonly heldMs: number;
  readonly postedMs: number;
  /** A read that quick ones should not wait for. */
  readonly heavy: HeavyRead | undefined;
  /** Tokens that the reader has taken for a write. */
  readonly paid: number;
  /** The call is part of a trace. */
  readonly isTraced: boolean;
}

/** Fields of requests that the reader has answered by itself. */
export interface DoorUnknownFields {
  readonly kind: 'unknownFields';
  readonly counts: readonly UnknownFieldCount[];
}

/** Requests about collections that the reader has answered by itself. */
export interface DoorCounts {
  readonly kind: 'counted';
  readonly counts: CollectionBatch;
}

/** A request that took the reader long. */
export interface DoorSlow {
  readonly kind: 'slow';
  readonly request: SlowRequest;
}

export type FromDoor = ServerNews | DoorCall | DoorUnknownFields | DoorCounts | DoorSlow;

/** Messages between the gRPC server of a reader's thread and the main thread. */

import type { CallTrace } from '../../protocols/model/explanation.js';
import type { HeavyRead, ReadOperation, WriteOperation } from '../../storage/threads/messages.js';
import type { AccessSettings } from '../access/known-callers.js';
import type { AuditSettings } from '../audit/audit-log.js';
import type { GateData } from '../context/client-gate.js';
import type { CollectionBatch } from '../context/collection-stats.js';
import type { Endpoint } from '../context/endpoint.js';
import type { ServerNews, ServerOrder } from '../context/reader-servers.js';
import type { SlowRequest } from '../context/slow-requests.js';
import type { DoorTls } from '../context/tls-sockets.js';
import type { TraceSettings } from '../otlp/trace-log.js';
import type { ServedOutcome } from './methods.js';

/** A method, without what carries it out. */
export interface GrpcRow extends Pick<Endpoint, 'access' | 'method'> {
  /** Of the operation. */
  readonly name: string;
  /** `/qdrant.Points/Count` */
  readonly path: string;
  /** Its place in GRPC_METHOD_NAMES. */
  readonly at: number;
  /** The read that a reader may answer by itself; null for all that the main thread answers. */
  readonly engine: ReadOperation | null;
  /** The write of points that a reader refuses beyond the rate of its collection; null for all others. */
  readonly write: WriteOperation | null;
}

export interface GrpcReaderSettings {
  readonly host: string;
  /** Shared by all readers. */
  readonly port: number;
  /** Null: connections are plain. */
  readonly tls: DoorTls | null;
  readonly messageBytesMax: number;
  /** Null: there are no keys. */
  readonly access: AccessSettings | null;
  /** Null: there is no audit log. */
  readonly audit: AuditSettings | null;
  /** Null: no traces are sent. */
  readonly traces: TraceSettings | null;
  readonly rows: readonly GrpcRow[];
  /** Which clients may connect; null: all. */
  readonly clients: GateData | null;
  /** For `SharedCounts`. */
  readonly counts: SharedArrayBuffer;
  /** See `SlowRequests`. */
  readonly slowFromMs: number;
}

export type ToGrpcDoor =
  /** To the call of this id. trace: how it was carried out, for the trace of the call. */
  { readonly kind: 'outcome'; readonly id: number; readonly outcome: ServedOutcome; readonly trace: CallTrace | null } | ServerOrder;

/** A call for the main thread. */
export interface GrpcDoorCall {
  readonly kind: 'call';
  readonly id: number;
  readonly path: string;
  /** The main thread finds the caller itself. */
  readonly credential: string | null;
  readonly message: Uint8Array;
  readonly deadlineMs: number;
  /** Headers with ids. */
  readonly fields: Readonly<Record<string, string>>;
  /** A read that quick ones should not wait for. */
  readonly heavy: HeavyRead | undefined;
  /** Tokens that the reader has taken for a write. */
  readonly paid: number;
  /** The call is part of a trace. */
  readonly isTraced: boolean;
}

/** Calls about collections that the reader has answered by itself. */
export interface GrpcDoorCounts {
  readonly kind: 'counted';
  readonly counts: CollectionBatch;
}

/** A call that took the reader long. */
export interface GrpcDoorSlow {
  readonly kind: 'slow';
  readonly request: SlowRequest;
}

export type FromGrpcDoor = ServerNews | GrpcDoorCall | GrpcDoorCounts | GrpcDoorSlow;

/** Messages between the gRPC server of a reader's thread and the main thread. */

import type { ReadOperation } from '../../storage/threads/messages.js';
import type { ServedOutcome } from './methods.js';

/** A method, without what carries it out. */
export interface GrpcRow {
  /** `/qdrant.Points/Count` */
  readonly path: string;
  /** Its place in GRPC_METHOD_NAMES. */
  readonly at: number;
  /** The read that a reader may answer by itself; null for all that the main thread answers. */
  readonly engine: ReadOperation | null;
}

export interface GrpcReaderSettings {
  readonly host: string;
  /** Shared by all readers. */
  readonly port: number;
  readonly messageBytesMax: number;
  readonly rows: readonly GrpcRow[];
  /** For `SharedCounts`. */
  readonly counts: SharedArrayBuffer;
}

export type ToGrpcDoor =
  /** To the call of this id. */
  | { readonly kind: 'outcome'; readonly id: number; readonly outcome: ServedOutcome }
  /** Take no new connections; answered by `closed` once there are none. */
  | { readonly kind: 'close' }
  /** Cut the connections that are left. */
  | { readonly kind: 'cut' };

export type FromGrpcDoor =
  | { readonly kind: 'listening' }
  | { readonly kind: 'failed'; readonly code: string | undefined; readonly message: string }
  /** A call for the main thread. */
  | { readonly kind: 'call'; readonly id: number; readonly path: string; readonly message: Uint8Array; readonly deadlineMs: number }
  | { readonly kind: 'closed' };

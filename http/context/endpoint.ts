/** How an operation of the API is reached, and by whom. */

import type { GrpcMethodName } from '../../protocols/grpc/method-names.js';

export type HttpMethod = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE';

/**
 * What it takes to call an operation. open: nothing, not even a key. known: a key or a token of any kind; the answer shows what its holder
 * may read. readPoints, writePoints: points of the collection of the path, of which a tenant has its own. r, w: reading or writing the
 * collection as a whole. global: reading what belongs to no collection. m: managing. What each
 * caller has of it: `access/decide.ts`.
 */
export type Access = 'open' | 'known' | 'readPoints' | 'writePoints' | 'r' | 'w' | 'global' | 'm';

export interface Endpoint {
  readonly method: HttpMethod;
  /** As the API reference writes it: `/collections/{collection_name}`. */
  readonly path: string;
  /** The method of gRPC that does the same; null: there is none. */
  readonly grpc: GrpcMethodName | null;
  readonly access: Access;
}

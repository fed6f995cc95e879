/** How an operation of the API is reached, and by whom. */

import type { GrpcMethodName } from '../../protocols/grpc/method-names.js';

export type HttpMethod = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE';

/** Open to all, reading, writing or managing. */
export type Access = 'open' | 'r' | 'w' | 'm';

export interface Endpoint {
  readonly method: HttpMethod;
  /** As the API reference writes it: `/collections/{collection_name}`. */
  readonly path: string;
  /** The method of gRPC that does the same; null: there is none. */
  readonly grpc: GrpcMethodName | null;
  readonly access: Access;
}

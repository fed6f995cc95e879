/** What a read request asks for, decoded: the same for the reader that answers it from its replicas and for the thread that asks other nodes. */

import { decodeMessage } from '../../protocols/grpc/decode.js';
import { schema } from '../../protocols/grpc/schema.js';
import type {
  CountQuery,
  FacetQuery,
  GroupsRequest,
  MatrixQuery,
  QueryRequest,
  RetrieveQuery,
  ScrollQuery,
} from '../../protocols/model/query.js';
import { decodeFacet } from '../../protocols/rest/facet.js';
import { decodeQueryGroups, decodeRecommendGroups, decodeSearchGroups } from '../../protocols/rest/groups.js';
import { decodeMatrix } from '../../protocols/rest/matrix.js';
import {
  decodeCount,
  decodeGetPoint,
  decodeQuery,
  decodeQueryBatch,
  decodeRetrieve,
  decodeScroll,
  decodeSearch,
  decodeSearchBatch,
} from '../../protocols/rest/queries.js';
import { decodeDiscover, decodeDiscoverBatch, decodeRecommend, decodeRecommendBatch } from '../../protocols/rest/recommend.js';
import { plainBody, scannedBody } from '../../protocols/rest/request-value.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';

export type ReadRequest =
  /** answer: which result the hits become; one query for the first two. */
  | {
      readonly kind: 'queries';
      readonly queries: readonly QueryRequest[];
      readonly answer: 'points' | 'queried' | 'pointLists' | 'queriedLists';
    }
  | { readonly kind: 'groups'; readonly request: GroupsRequest }
  | { readonly kind: 'retrieve'; readonly query: RetrieveQuery }
  /** The one point that must be there. */
  | { readonly kind: 'point'; readonly query: RetrieveQuery }
  | { readonly kind: 'scroll'; readonly query: ScrollQuery }
  | { readonly kind: 'count'; readonly query: CountQuery }
  | { readonly kind: 'facet'; readonly query: FacetQuery }
  | { readonly kind: 'matrix'; readonly query: MatrixQuery; readonly answer: 'pairs' | 'offsets' };

/** Errors: those of the decoders; `malformedBody` for a gRPC message that is none. */
export function decodeRead(operation: ReadOperation, { body: bytes, message, path }: RawRequest): ReadRequest {
  const body = message === undefined ? bytes : decodeMessage(schema().message(message), bytes ?? NO_BODY);
  switch (operation) {
    case 'query':
      return { kind: 'queries', queries: [decodeQuery(scannedBody(body))], answer: 'queried' };
    case 'search':
      return { kind: 'queries', queries: [decodeSearch(scannedBody(body))], answer: 'points' };
    case 'queryBatch':
      return { kind: 'queries', queries: decodeQueryBatch(scannedBody(body)), answer: 'queriedLists' };
    case 'searchBatch':
      return { kind: 'queries', queries: decodeSearchBatch(scannedBody(body)), answer: 'pointLists' };
    case 'recommend':
      return { kind: 'queries', queries: [decodeRecommend(scannedBody(body))], answer: 'points' };
    case 'recommendBatch':
      return { kind: 'queries', queries: decodeRecommendBatch(scannedBody(body)), answer: 'pointLists' };
    case 'discover':
      return { kind: 'queries', queries: [decodeDiscover(scannedBody(body))], answer: 'points' };
    case 'discoverBatch':
      return { kind: 'queries', queries: decodeDiscoverBatch(scannedBody(body)), answer: 'pointLists' };
    case 'queryGroups':
      return { kind: 'groups', request: decodeQueryGroups(scannedBody(body)) };
    case 'searchGroups':
      return { kind: 'groups', request: decodeSearchGroups(scannedBody(body)) };
    case 'recommendGroups':
      return { kind: 'groups', request: decodeRecommendGroups(scannedBody(body)) };
    case 'retrieve':
      return { kind: 'retrieve', query: decodeRetrieve(plainBody(body)) };
    case 'getPoint':
      return { kind: 'point', query: decodeGetPoint(path.id ?? '') };
    case 'scroll':
      return { kind: 'scroll', query: decodeScroll(plainBody(body)) };
    case 'count':
      return { kind: 'count', query: decodeCount(plainBody(body)) };
    case 'facet':
      return { kind: 'facet', query: decodeFacet(plainBody(body)) };
    case 'matrixPairs':
      return { kind: 'matrix', query: decodeMatrix(plainBody(body)), answer: 'pairs' };
    case 'matrixOffsets':
      return { kind: 'matrix', query: decodeMatrix(plainBody(body)), answer: 'offsets' };
    default:
      return operation satisfies never;
  }
}

const NO_BODY = new Uint8Array(0);

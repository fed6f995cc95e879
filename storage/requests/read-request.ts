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
import type { UnknownFields } from '../../protocols/model/unknown-fields.js';
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
import { scanVectors } from '../../protocols/rest/vector-scan.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { checkValues } from './body-values.js';
import { findUnknownIn } from './unknown-fields.js';

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

/** Unknown fields of the body are added to the request's. Errors: those of the decoders; `malformedBody` for a gRPC message that is none. */
export function decodeRead(operation: ReadOperation, { body: bytes, message, path, unknownFields }: RawRequest): ReadRequest {
  if (message === undefined && bytes !== null) checkValues('read', bytes, () => scanVectors(bytes));
  const body =
    message === undefined ? checkedBody(operation, bytes, unknownFields) : decodeMessage(schema().message(message), bytes ?? NO_BODY);
  return DECODERS[operation](body, path);
}

function checkedBody(operation: ReadOperation, bytes: Uint8Array | null, unknownFields: UnknownFields | undefined): Body {
  if (bytes === null || unknownFields === undefined) return bytes;
  const body = WITHOUT_VECTORS.has(operation) ? plainBody(bytes) : scannedBody(bytes);
  findUnknownIn(operation, body.value, unknownFields);
  return body;
}

type Decoder = (body: Body, path: RawRequest['path']) => ReadRequest;
/** JSON bytes, or what a gRPC message was decoded to. */
type Body = Parameters<typeof plainBody>[0];

const DECODERS: Readonly<Record<ReadOperation, Decoder>> = {
  query: (body) => ({ kind: 'queries', queries: [decodeQuery(scannedBody(body))], answer: 'queried' }),
  search: (body) => ({ kind: 'queries', queries: [decodeSearch(scannedBody(body))], answer: 'points' }),
  queryBatch: (body) => ({ kind: 'queries', queries: decodeQueryBatch(scannedBody(body)), answer: 'queriedLists' }),
  searchBatch: (body) => ({ kind: 'queries', queries: decodeSearchBatch(scannedBody(body)), answer: 'pointLists' }),
  recommend: (body) => ({ kind: 'queries', queries: [decodeRecommend(scannedBody(body))], answer: 'points' }),
  recommendBatch: (body) => ({ kind: 'queries', queries: decodeRecommendBatch(scannedBody(body)), answer: 'pointLists' }),
  discover: (body) => ({ kind: 'queries', queries: [decodeDiscover(scannedBody(body))], answer: 'points' }),
  discoverBatch: (body) => ({ kind: 'queries', queries: decodeDiscoverBatch(scannedBody(body)), answer: 'pointLists' }),
  queryGroups: (body) => ({ kind: 'groups', request: decodeQueryGroups(scannedBody(body)) }),
  searchGroups: (body) => ({ kind: 'groups', request: decodeSearchGroups(scannedBody(body)) }),
  recommendGroups: (body) => ({ kind: 'groups', request: decodeRecommendGroups(scannedBody(body)) }),
  retrieve: (body) => ({ kind: 'retrieve', query: decodeRetrieve(plainBody(body)) }),
  getPoint: (_, path) => ({ kind: 'point', query: decodeGetPoint(path.id ?? '') }),
  scroll: (body) => ({ kind: 'scroll', query: decodeScroll(plainBody(body)) }),
  count: (body) => ({ kind: 'count', query: decodeCount(plainBody(body)) }),
  facet: (body) => ({ kind: 'facet', query: decodeFacet(plainBody(body)) }),
  matrixPairs: (body) => ({ kind: 'matrix', query: decodeMatrix(plainBody(body)), answer: 'pairs' }),
  matrixOffsets: (body) => ({ kind: 'matrix', query: decodeMatrix(plainBody(body)), answer: 'offsets' }),
};

const WITHOUT_VECTORS: ReadonlySet<ReadOperation> = new Set<ReadOperation>([
  'retrieve',
  'scroll',
  'count',
  'facet',
  'matrixPairs',
  'matrixOffsets',
]);

const NO_BODY = new Uint8Array(0);

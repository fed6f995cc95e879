/** What a read request asks for, decoded: the same for the reader that answers it from its replicas and for the thread that asks other nodes. */

import { TroupeError } from '../../protocols/errors.js';
import { decodeMessage } from '../../protocols/grpc/decode.js';
import { schema } from '../../protocols/grpc/schema.js';
import type { ExplainRequest } from '../../protocols/model/explanation.js';
import type { Filter } from '../../protocols/model/filter.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import type {
  CountQuery,
  FacetQuery,
  GroupsRequest,
  MatrixQuery,
  QueryRequest,
  RetrieveQuery,
  ScrollQuery,
} from '../../protocols/model/query.js';
import type { Grants } from '../../protocols/model/scope.js';
import { decodeFacet } from '../../protocols/rest/facet.js';
import { isObject, type JsonObject } from '../../protocols/rest/fields.js';
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
import { type CheckJson, plainBody, type RequestValue, scannedBody } from '../../protocols/rest/request-value.js';
import { ownGrant } from '../grants/own-grant.js';
import { restrictRead } from '../grants/restrict-read.js';
import { checkReadLimits } from '../limits/check-read.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { checkValues } from './body-values.js';
import { findUnknownIn } from './unknown-fields.js';

/** Only points that pass may be asked for by their ids, or be examples; absent: all. */
interface Within {
  readonly within?: Filter;
}

export type ReadRequest =
  /** answer: which result the hits become; one query for the first two. */
  | ({
      readonly kind: 'queries';
      readonly queries: readonly QueryRequest[];
      readonly answer: 'points' | 'queried' | 'pointLists' | 'queriedLists';
    } & Within)
  | ({ readonly kind: 'groups'; readonly request: GroupsRequest } & Within)
  | ({ readonly kind: 'retrieve'; readonly query: RetrieveQuery } & Within)
  /** The one point that must be there. */
  | ({ readonly kind: 'point'; readonly query: RetrieveQuery } & Within)
  | { readonly kind: 'scroll'; readonly query: ScrollQuery }
  | { readonly kind: 'count'; readonly query: CountQuery }
  | { readonly kind: 'facet'; readonly query: FacetQuery }
  | { readonly kind: 'matrix'; readonly query: MatrixQuery; readonly answer: 'pairs' | 'offsets' };

/**
 * Unknown fields of the body are added to the request's. Errors: those of the decoders; `malformedBody` for a gRPC message that is none;
 * `forbidden` for collections that the request may not name; `badRequest` for what goes beyond its limits.
 */
export function decodeRead(operation: ReadOperation, request: RawRequest): ReadRequest {
  const read = decodeBody(operation, request);
  const { explain, grants, limits, path, timeoutSeconds } = request;
  if (explain?.wanted === true) checkExplain(grants, path.collection_name);
  if (limits !== undefined) checkReadLimits(read, limits, timeoutSeconds);
  return grants === undefined ? read : restrictRead(read, grants, path.collection_name);
}

function decodeBody(operation: ReadOperation, { body: bytes, explain, message, path, unknownFields }: RawRequest): ReadRequest {
  const { decode, parse } = DECODERS[operation];
  if (message !== undefined) {
    const value = decodeMessage(schema().message(message), bytes ?? NO_BODY);
    if (explain !== undefined) noteExplain(value.value, explain);
    return decode(value, path);
  }
  const body = parse(bytes, checkJson);
  if (explain !== undefined) noteExplain(body.value, explain);
  if (bytes !== null && unknownFields !== undefined) findUnknownIn(operation, body.value, unknownFields);
  return decode(body, path);
}

/** Whether a body asks for an explanation. Its decoder refuses what is no boolean. */
function noteExplain(body: JsonValue, explain: ExplainRequest): void {
  if (!isObject(body)) return;
  const { searches } = body;
  if (asksToExplain(body) || (Array.isArray(searches) && searches.some((search) => isObject(search) && asksToExplain(search))))
    explain.wanted = true;
}

function asksToExplain({ explain }: JsonObject): boolean {
  return explain === true;
}

/** An explanation tells of all rows that were looked at. Errors: `forbidden` for a tenant, who may know of its own points alone. */
function checkExplain(grants: Grants | undefined, collection: string | undefined): void {
  if (grants === undefined || ownGrant(grants, collection).tenant === null) return;
  throw new TroupeError(
    'forbidden',
    'An explanation tells of the points of all tenants: access to the whole collection is required, or leave `explain` out',
  );
}

function checkJson(json: Uint8Array | string, vectors: number): void {
  checkValues('read', json, vectors);
}

interface Decoder {
  /** Of JSON bytes. */
  readonly parse: (body: Uint8Array | null, check: CheckJson) => RequestValue;
  /** Of that value, or of a gRPC message's. */
  readonly decode: (body: RequestValue, path: RawRequest['path']) => ReadRequest;
}

/** Of a body that may hold vectors. */
function scanned(decode: Decoder['decode']): Decoder {
  return { parse: scannedBody, decode };
}

/** Of a body without vectors. */
function plain(decode: Decoder['decode']): Decoder {
  return { parse: plainBody, decode };
}

/** Of a request without a body. */
function pathOnly(decode: (path: RawRequest['path']) => ReadRequest): Decoder {
  return { parse: () => NOTHING, decode: (_, path) => decode(path) };
}

const DECODERS: Readonly<Record<ReadOperation, Decoder>> = {
  query: scanned((body) => ({ kind: 'queries', queries: [decodeQuery(body)], answer: 'queried' })),
  search: scanned((body) => ({ kind: 'queries', queries: [decodeSearch(body)], answer: 'points' })),
  queryBatch: scanned((body) => ({ kind: 'queries', queries: decodeQueryBatch(body), answer: 'queriedLists' })),
  searchBatch: scanned((body) => ({ kind: 'queries', queries: decodeSearchBatch(body), answer: 'pointLists' })),
  recommend: scanned((body) => ({ kind: 'queries', queries: [decodeRecommend(body)], answer: 'points' })),
  recommendBatch: scanned((body) => ({ kind: 'queries', queries: decodeRecommendBatch(body), answer: 'pointLists' })),
  discover: scanned((body) => ({ kind: 'queries', queries: [decodeDiscover(body)], answer: 'points' })),
  discoverBatch: scanned((body) => ({ kind: 'queries', queries: decodeDiscoverBatch(body), answer: 'pointLists' })),
  queryGroups: scanned((body) => ({ kind: 'groups', request: decodeQueryGroups(body) })),
  searchGroups: scanned((body) => ({ kind: 'groups', request: decodeSearchGroups(body) })),
  recommendGroups: scanned((body) => ({ kind: 'groups', request: decodeRecommendGroups(body) })),
  retrieve: plain((body) => ({ kind: 'retrieve', query: decodeRetrieve(body) })),
  getPoint: pathOnly((path) => ({ kind: 'point', query: decodeGetPoint(path.id ?? '') })),
  scroll: plain((body) => ({ kind: 'scroll', query: decodeScroll(body) })),
  count: plain((body) => ({ kind: 'count', query: decodeCount(body) })),
  facet: plain((body) => ({ kind: 'facet', query: decodeFacet(body) })),
  matrixPairs: plain((body) => ({ kind: 'matrix', query: decodeMatrix(body), answer: 'pairs' })),
  matrixOffsets: plain((body) => ({ kind: 'matrix', query: decodeMatrix(body), answer: 'offsets' })),
};

const NOTHING: RequestValue = { value: null, vectors: null };
const NO_BODY = new Uint8Array(0);

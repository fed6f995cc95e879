/** Replies of the REST server, and what each of its ways checks of a read before an engine worker gets it. */

import { ERROR_KINDS, TroupeError } from '../../../protocols/errors.js';
import { pointIdFromText } from '../../../protocols/model/point-id.js';
import { checkCollectionName, type QueryParameters, type ReadParameters, readParameters } from '../../../protocols/rest/parameters.js';
import type { RawRequest, ReadOperation } from '../../../storage/threads/messages.js';
import { clientFacts, envelope, errorBody, errorHeaders } from '../../context/answer.js';
import type { Endpoint } from '../../context/endpoint.js';
import { usageMember } from '../../context/hardware.js';

export interface RestReply {
  readonly status: number;
  /** Undefined where there is no body. */
  readonly type: string | undefined;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** The request's body was longer than allowed, so the rest of it may still be on its way. */
  readonly isBodyTooLarge: boolean;
}

const JSON_TYPE = 'application/json';
const NO_HEADERS: readonly string[] = [];

/** Whether requests of this method have a body. */
export function hasBody({ method }: Pick<Endpoint, 'method'>): boolean {
  return method !== 'GET' && method !== 'DELETE';
}

/** The parameters of a read of points, and its path. Errors: `malformedParameter`, `wrongInput`, `invalidPath`. */
export function checkedRead(operation: ReadOperation, path: Readonly<Record<string, string>>, query: QueryParameters): ReadParameters {
  const parameters = readParameters(query);
  if (operation === 'getPoint') checkPointId(path.id as string);
  checkCollectionName(path.collection_name as string);
  return parameters;
}

export function jsonReply(status: number, body: Buffer): RestReply {
  return { status, type: JSON_TYPE, headers: NO_HEADERS, body, isBodyTooLarge: false };
}

/** What the engine has answered to a request, with what it cost where that is measured. */
export function resultReply(result: Uint8Array, milliseconds: number, { usage }: RawRequest): RestReply {
  return jsonReply(200, envelope(result, milliseconds, usage === undefined ? '' : usageMember(usage)));
}

export function errorReply(error: unknown, endpoint: Pick<Endpoint, 'access' | 'method'>, milliseconds: number): RestReply {
  const facts = clientFacts(error, endpoint);
  return {
    status: ERROR_KINDS[facts.code].restStatus,
    type: JSON_TYPE,
    headers: errorHeaders(facts).flat(),
    body: errorBody(facts, milliseconds),
    isBodyTooLarge: facts.code === 'bodyTooLarge',
  };
}

function checkPointId(text: string): void {
  if (pointIdFromText(text) === undefined)
    throw new TroupeError('wrongInput', `${JSON.stringify(text)} is not a point id: expected an unsigned integer or a UUID`);
}

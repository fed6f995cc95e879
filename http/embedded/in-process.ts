/** The door for callers in the same process: operations by name, with plain objects for bodies and results. */

import { TroupeError } from '../../protocols/errors.js';
import { parseStored } from '../../protocols/json.js';
import type { Explanation } from '../../protocols/model/explanation.js';
import type { BodyOf, OperationName, ResultOf } from '../../protocols/openapi/operations.js';
import { checkCollectionName, type QueryParameters, readParameters, updateParameters } from '../../protocols/rest/parameters.js';
import { PROGRAM } from '../access/caller.js';
import { plainCopy } from '../context/long-value.js';
import { checkMode } from '../context/recovery.js';
import type { DoorServices } from '../context/services.js';
import { pointsRequest } from '../handlers/points.js';
import { ROUTES } from '../routes.js';
import { encodeBody } from './body.js';

export interface Call<Name extends OperationName> {
  /** Parameters of the operation's path. */
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: QueryParameters;
  readonly body?: BodyOf<Name>;
  /** Is told how a read with `explain: true` was carried out, before its result is there. */
  readonly explained?: (explanation: Explanation) => void;
}

const NOTHING = new Uint8Array(0);
const BY_NAME = new Map(ROUTES.map((route) => [route.name, route]));

/** Carries one operation out. Errors: those of the catalogue, as over REST. */
export async function callOperation<Name extends OperationName>(
  services: DoorServices,
  name: Name,
  call: Call<Name>,
): Promise<ResultOf<Name>> {
  const { path = {}, query = {} } = call;
  const route = BY_NAME.get(name);
  if (path.collection_name !== undefined) checkCollectionName(path.collection_name);
  if (route !== undefined) checkMode(services.recoveryMode, route);
  const body = call.body === undefined ? null : encodeBody(call.body);
  switch (route?.kind) {
    case 'read': {
      const request = pointsRequest(services, {
        path,
        query: query as Record<string, string>,
        body,
        caller: PROGRAM,
        ...readParameters(query),
      });
      const result = await services.node.read(path.collection_name as string, route.engine, request);
      if (request.explain?.explanation) call.explained?.(request.explain.explanation);
      return decodeResult<Name>(result);
    }
    case 'write': {
      const { timeoutSeconds, wait } = updateParameters(query);
      const call = { path, query: query as Record<string, string>, body, caller: PROGRAM, timeoutSeconds, consistency: undefined };
      const request = pointsRequest(services, call);
      return decodeResult<Name>(await services.node.write(path.collection_name as string, route.engine, wait, request));
    }
    case 'node': {
      const answer = await route.run(services, { path, query, body: body ?? NOTHING, caller: PROGRAM });
      // The values are the ones that the REST door prints.
      if (answer.kind === 'result') return structuredClone(answer.value) as ResultOf<Name>;
      if (answer.kind === 'accepted') return null as ResultOf<Name>;
      if (answer.kind === 'long') return (await services.reports.works.run(plainCopy(answer.value()))) as ResultOf<Name>;
      break;
    }
    default:
      break;
  }
  throw new TroupeError('unsupported', `${name} is not available in the same process in this release`);
}

function decodeResult<Name extends OperationName>(bytes: Uint8Array): ResultOf<Name> {
  return parseStored(bytes) as unknown as ResultOf<Name>;
}

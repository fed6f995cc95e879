/** What each way of the REST server checks of a request before its body has come: the path and the parameters. */

import { TroupeError } from '../../../protocols/errors.js';
import { pointIdFromText } from '../../../protocols/model/point-id.js';
import {
  checkCollectionName,
  type QueryParameters,
  type ReadParameters,
  readParameters,
  type UpdateParameters,
  updateParameters,
} from '../../../protocols/rest/parameters.js';
import type { ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';
import type { Endpoint } from '../../context/endpoint.js';

type Path = Readonly<Record<string, string>>;

/** A row of the table of routes, as far as the head of a request concerns it. */
export type HeadRow = Pick<Endpoint, 'access' | 'method' | 'path'> &
  (
    | { readonly kind: 'read'; readonly engine: ReadOperation }
    | { readonly kind: 'write'; readonly engine: WriteOperation }
    /** Of `upload` and `download` the body or the answer is an archive. */
    | { readonly kind: 'node' | 'upload' | 'download' }
  );

/** Whether requests of this method have a body. */
export function hasBody({ method }: Pick<Endpoint, 'method'>): boolean {
  return method !== 'GET' && method !== 'DELETE';
}

/** Errors: all with which a request of this row is refused before its body has come. */
export function checkHead(row: HeadRow, path: Path, query: QueryParameters): void {
  switch (row.kind) {
    case 'read':
      checkedRead(row.engine, path, query);
      return;
    case 'write':
      checkedWrite(path, query);
      return;
    case 'node':
    case 'upload':
    case 'download':
      checkNodePath(path);
      return;
    default:
      row satisfies never;
  }
}

/** The parameters of a read of points, and its path. Errors: `malformedParameter`, `wrongInput`, `invalidPath`. */
export function checkedRead(operation: ReadOperation, path: Path, query: QueryParameters): ReadParameters {
  const parameters = readParameters(query);
  if (operation === 'getPoint') checkPointId(path.id as string);
  checkCollectionName(path.collection_name as string);
  return parameters;
}

/** The parameters of a write of points, and its path. Errors: `malformedParameter`, `invalidPath`. */
export function checkedWrite(path: Path, query: QueryParameters): UpdateParameters {
  const parameters = updateParameters(query);
  checkCollectionName(path.collection_name as string);
  return parameters;
}

/** The path of a request about a collection or the node. Errors: `invalidPath`. */
export function checkNodePath(path: Path): void {
  if (path.collection_name !== undefined) checkCollectionName(path.collection_name);
}

function checkPointId(text: string): void {
  if (pointIdFromText(text) === undefined)
    throw new TroupeError('wrongInput', `${JSON.stringify(text)} is not a point id: expected an unsigned integer or a UUID`);
}

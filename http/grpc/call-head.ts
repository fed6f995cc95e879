/** What the header of a request says about a call. Source: gRPC over HTTP/2, «Requests». */

import type { FieldList } from '../../protocols/http2/hpack-decoder.js';
import { credentialOf } from '../access/credentials.js';
import type { RequestOrigin } from '../audit/origin.js';
import { fieldValue } from './request-fields.js';

export interface CallHead {
  /** `/package.Service/Method` */
  readonly path: string;
  /** False for a request of another kind. */
  readonly isGrpc: boolean;
  /** How long the client waits, in milliseconds; infinite when it does not say; null for a time that cannot be read. */
  readonly timeoutMs: number | null;
  /** As it was sent; undefined: none was. */
  readonly timeout: string | undefined;
  /** Key or token: see `access/credentials.ts`. */
  readonly credential: string | null;
  /** All fields, as they came. */
  readonly fields: FieldList;
  /** How the messages are compressed that say that they are. */
  readonly encoding: string;
}

const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

export function callHead(fields: FieldList): CallHead {
  const timeout = fieldValue(fields, 'grpc-timeout');
  return {
    path: fieldValue(fields, ':path') as string,
    isGrpc: fieldValue(fields, 'content-type')?.startsWith('application/grpc') === true,
    timeoutMs: timeoutOf(timeout),
    timeout,
    credential: credentialOf(fields),
    fields,
    encoding: fieldValue(fields, 'grpc-encoding') ?? 'identity',
  };
}

/** address: of the client. */
export function originOfCall({ fields }: CallHead, address: string): RequestOrigin {
  return { address, field: (name) => fieldValue(fields, name) };
}

function timeoutOf(timeout: string | undefined): number | null {
  if (timeout === undefined) return Number.POSITIVE_INFINITY;
  const [, digits, unit] = TIMEOUT.exec(timeout) ?? [];
  return digits === undefined ? null : Number(digits) * (UNIT_MS[unit as string] as number);
}

/** Errors of the catalogue as statuses of gRPC. */

import { ERROR_KINDS, type ErrorCode, type ErrorFacts } from '../../protocols/errors.js';

/** Prefixes that speak of JSON and of paths over REST. */
const PREFIXES: Partial<Record<ErrorCode, string>> = {
  malformedBody: 'Format error: ',
  malformedParameter: 'Format error: ',
  invalidValue: 'Validation error: ',
  invalidParameter: 'Validation error: ',
  invalidPath: 'Validation error: ',
};

/** The number and the message of the status. */
export function grpcStatusOf({ code, detail }: ErrorFacts): { readonly code: number; readonly details: string } {
  return { code: ERROR_KINDS[code].grpcStatus, details: (PREFIXES[code] ?? ERROR_KINDS[code].prefix) + detail };
}

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

/** Statuses that the transport itself answers with. Source: gRPC, «Status codes». */
export const DEADLINE_EXCEEDED = 4;
export const PERMISSION_DENIED = 7;
export const RESOURCE_EXHAUSTED = 8;
export const UNIMPLEMENTED = 12;
export const INTERNAL = 13;
export const UNAUTHENTICATED = 16;

/** Bytes that are sent as they are: printable ASCII without %. */
const PLAIN = /^[ -$&-~]*$/;

/** The value of `grpc-message`: bytes that are not printable, and %, as %XX. Source: gRPC over HTTP/2, «Status-Message». */
export function messageText(details: string): string {
  if (PLAIN.test(details)) return details.trim() === details ? details : encodeEnds(details);
  let text = '';
  for (const byte of Buffer.from(details, 'utf8')) {
    text += byte < 0x20 || byte > 0x7e || byte === 0x25 ? percent(byte) : String.fromCharCode(byte);
  }
  return encodeEnds(text);
}

/** The value of a field neither begins nor ends with a space. */
function encodeEnds(text: string): string {
  return text.replace(/^ | $/g, percent(0x20));
}

function percent(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** What is wrong with the fields of a head that Node's HTTP server has taken. */

import { FIELDS_MAX } from './fast/head.js';

export interface WrongFields {
  readonly status: 400 | 431;
  readonly detail: string;
}

/** rawHeaders: names and values in turn. Null: nothing is wrong. Source: RFC 9112, section 3.2. */
export function wrongFields(rawHeaders: readonly string[], httpVersion: string): WrongFields | null {
  if (rawHeaders.length > 2 * FIELDS_MAX) return { status: 431, detail: `the request has more than ${FIELDS_MAX} header fields` };
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === 'host') hosts++;
  const isWrong = hosts > 1 || (hosts === 0 && httpVersion === '1.1');
  return isWrong ? { status: 400, detail: `the request has ${hosts} fields \`host\`, and must have one` } : null;
}

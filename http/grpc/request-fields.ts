/** What the header of a request must be like. Source: RFC 9113, section 8. */

import type { FieldList } from '../../protocols/http2/hpack-decoder.js';

/** Of HTTP/1.1: they speak of a connection. */
const CONNECTION_FIELDS = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'];
const NAME = /^:?[!#$%&'*+.^_`|~0-9a-z-]+$/;
const LENGTH = /^\d{1,15}$/;
const VALUE = /^$|^[^\0\n\r\t ]$|^[^\0\n\r\t ][^\0\n\r]*[^\0\n\r\t ]$/;
const REQUIRED = [':method', ':scheme', ':path'];
const PSEUDO = [...REQUIRED, ':authority'];

/** What is wrong with a request's fields; null: nothing. */
export function requestProblem(fields: FieldList): string | null {
  const pseudo = new Set<string>();
  let regular = false;
  let length: string | null = null;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    const value = fields[at + 1] as string;
    if (!NAME.test(name) || !VALUE.test(value)) return `the field ${JSON.stringify(name)} is not allowed`;
    if (!name.startsWith(':')) {
      regular = true;
      if (name === 'content-length') {
        if (!LENGTH.test(value) || (length !== null && length !== value)) return 'the length of the body is not one number';
        length = value;
      }
      if (CONNECTION_FIELDS.includes(name) || (name === 'te' && value !== 'trailers')) return `the field ${name} is not allowed`;
      continue;
    }
    if (regular || pseudo.has(name) || !PSEUDO.includes(name)) return `the field ${name} is not allowed here`;
    pseudo.add(name);
  }
  const missing = REQUIRED.find((name) => !pseudo.has(name));
  return missing === undefined ? null : `the field ${missing} is missing`;
}

/** Bytes of the body, if valid fields say it; else null. */
export function bodyLength(fields: FieldList): number | null {
  const length = fieldValue(fields, 'content-length');
  return length === undefined ? null : Number(length);
}

/** The value of a field, the first of several; undefined when there is none. */
export function fieldValue(fields: FieldList, name: string): string | undefined {
  for (let at = 0; at < fields.length; at += 2) if (fields[at] === name) return fields[at + 1];
  return undefined;
}

/** Tokens as anybody can sign them who knows the key: the tests do without the library that checks them. */

import { createHmac } from 'node:crypto';

export const API_KEY = 'primary-key-0123456789abcdefghij';
export const ALT_KEY = 'alternative-key-0123456789abcdef';
export const READ_KEY = 'read-only-key-0123456789';

export interface Signing {
  readonly key?: string;
  readonly header?: object;
  /** As it is named in Node.js; null: no signature. */
  readonly hash?: 'sha256' | 'sha512' | null;
}

export function tokenOf(claims: unknown, { hash = 'sha256', header = { alg: 'HS256', typ: 'JWT' }, key = API_KEY }: Signing = {}): string {
  const part = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
  const signed = `${part(header)}.${part(claims)}`;
  return `${signed}.${hash === null ? '' : createHmac(hash, key).update(signed).digest('base64url')}`;
}

/** A date in claims. */
export function secondsFromNow(seconds: number): number {
  return Math.floor(Date.now() / 1000) + seconds;
}

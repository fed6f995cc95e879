/** Makes tokens (JWT, HS256). The key stays on the page: nothing is sent. */

import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import type { Level } from './access-table.js';
import { literal } from './literal.js';

export interface TokenWish {
  readonly level: Level;
  /** Of the levels for some collections. */
  readonly collections: readonly string[];
  /** Null: it does not expire. */
  readonly expiresInSec: number | null;
  /** The token is valid only while the collection has such a point; null: always. */
  readonly exists: { readonly collection: string; readonly key: string; readonly value: string } | null;
}

export type Claims = Readonly<Record<string, unknown>>;

/** nowSec: seconds since the epoch. */
export function claimsOf({ level, collections, expiresInSec, exists }: TokenWish, nowSec: number): Claims {
  const claims: Record<string, unknown> = {};
  if (expiresInSec !== null) claims.exp = Math.floor(nowSec) + expiresInSec;
  if (exists !== null)
    claims.value_exists = { collection: exists.collection, matches: [{ key: exists.key, value: literal(exists.value) }] };
  if (level === 'manage') claims.access = 'm';
  else if (level === 'read') claims.access = 'r';
  else claims.access = collections.map((collection) => ({ collection, access: level === 'collection-write' ? 'rw' : 'r' }));
  return claims;
}

/** The token of these claims. Source: RFC 7515, compact serialization. */
export function signToken(claims: Claims, key: string): string {
  const signed = `${base64Url(utf8(JSON.stringify({ alg: 'HS256', typ: 'JWT' })))}.${base64Url(utf8(JSON.stringify(claims)))}`;
  return `${signed}.${base64Url(hmac(sha256, utf8(key), utf8(signed)))}`;
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function base64Url(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

/**
 * Who sends a request. Every door makes a caller of what the request carries, before anything is done for it; what a caller may do is
 * decided elsewhere, for one operation at a time. A caller never holds a secret: it may be logged.
 */

import type { JsonValue } from '../../protocols/model/payload.js';
import type { Grants } from '../../protocols/model/scope.js';

export type Caller =
  /** The node has no keys: everybody may do everything. */
  | { readonly kind: 'anyone' }
  /** A program that has the node in its own process. */
  | { readonly kind: 'program' }
  /** Nobody that the node knows. */
  | Stranger
  /** The holder of a key. */
  | { readonly kind: 'key'; readonly setting: KeySetting }
  /** The holder of a token that is signed and in force. */
  | TokenHolder;

/** The setting that a key stands in. */
export type KeySetting = 'service.api_key' | 'service.alt_api_key' | 'service.read_only_api_key';

export interface Stranger {
  readonly kind: 'stranger';
  /**
   * missing: the request has no key and no token. unknown: what it has is neither. expired: the token is over. early: the token is not in
   * force yet. badSignature: the token is signed with none of the keys. badClaims: the token is signed, and says what it may not. revoked:
   * the point that the token wants is not there (`value_exists`).
   */
  readonly reason: 'missing' | 'unknown' | 'expired' | 'early' | 'badSignature' | 'badClaims' | 'revoked';
  /** What the client is told. */
  readonly text: string;
}

export interface TokenHolder {
  readonly kind: 'token';
  /** Claim `sub`; null: the token has none. */
  readonly subject: string | null;
  /** The first 16 hexadecimal digits of the token's SHA-256: tells tokens apart, and leads to none. */
  readonly fingerprint: string;
  readonly access: TokenAccess;
  /** Claim `value_exists`; null: the token has none. */
  readonly valueExists: ValueExists | null;
}

/** Claim `access`. */
export type TokenAccess =
  | { readonly kind: 'manage' }
  /** All collections, and what the node says of itself. */
  | { readonly kind: 'read' }
  | { readonly kind: 'collections'; readonly grants: Grants };

/** The token is in force while this collection has a point with all these values. */
export interface ValueExists {
  readonly collection: string;
  readonly matches: readonly { readonly key: string; readonly value: JsonValue }[];
}

/** Whether the caller's token is in force only if a point is there, which only the main thread knows. */
export function isInDoubt(caller: Caller): caller is TokenHolder {
  return caller.kind === 'token' && caller.valueExists !== null;
}

export const ANYONE: Caller = { kind: 'anyone' };
export const PROGRAM: Caller = { kind: 'program' };

/** Tokens: signatures. Loaded where `service.jwt_rbac` is on; the only importer of `jsonwebtoken`. */

import jsonwebtoken, { type Jwt } from 'jsonwebtoken';
import { crypto } from '../../protocols/late-modules.js';
import { readClaims, type TokenClaims } from './claims.js';

/** A token whose signature is right, or what is wrong with it. */
export type CheckedToken =
  | { readonly kind: 'signed'; readonly claims: TokenClaims; readonly fingerprint: string }
  | { readonly kind: 'noToken' }
  | { readonly kind: 'badSignature' }
  | { readonly kind: 'badClaims'; readonly problem: string };

const ALGORITHM = 'HS256';
const FINGERPRINT_DIGITS = 16;

/** secrets: keys that tokens may be signed with. The time is not looked at: it goes on after this. */
export function checkSignedToken(token: string, secrets: readonly string[]): CheckedToken {
  const decoded = decode(token);
  // `crit` says that whoever does not know its names is to refuse the token. Source: RFC 7515, section 4.1.11.
  if (decoded === null || decoded.payload === null || decoded.header.alg !== ALGORITHM || decoded.header.crit !== undefined)
    return { kind: 'noToken' };
  if (!secrets.some((secret) => isSignedWith(secret, token))) return { kind: 'badSignature' };
  const read = readClaims(decoded.payload);
  if ('problem' in read) return { kind: 'badClaims', problem: read.problem };
  return { kind: 'signed', claims: read.claims, fingerprint: fingerprintOf(token) };
}

/** A token with these claims. secret: the key that it is signed with. */
export function signedToken(claims: Readonly<Record<string, unknown>>, secret: string): string {
  return jsonwebtoken.sign(claims, secret, { algorithm: ALGORITHM, noTimestamp: true });
}

/** Null for what has not the form of a token. */
function decode(token: string): Jwt | null {
  try {
    return jsonwebtoken.decode(token, { complete: true });
  } catch {
    // Payloads that are no JSON.
    return null;
  }
}

function isSignedWith(secret: string, token: string): boolean {
  try {
    jsonwebtoken.verify(token, secret, { algorithms: [ALGORITHM], ignoreExpiration: true, ignoreNotBefore: true });
    return true;
  } catch (error) {
    if (error instanceof jsonwebtoken.JsonWebTokenError) return false;
    throw error;
  }
}

function fingerprintOf(token: string): string {
  return crypto().createHash('sha256').update(token).digest('hex').slice(0, FINGERPRINT_DIGITS);
}

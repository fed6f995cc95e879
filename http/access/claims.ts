/** What the claims of a token say. Source: specification, «JWT access control»; contract, scenario `security-jwt-claims`. */

import type { Grant, Grants, Tenant } from '../../protocols/model/scope.js';
import type { TokenAccess, ValueExists } from './caller.js';

export interface TokenClaims {
  readonly subject: string | null;
  readonly access: TokenAccess;
  readonly valueExists: ValueExists | null;
  /** Seconds since the epoch; infinite where the token does not say. */
  readonly expires: number;
  readonly notBefore: number;
}

/** The claims, or what is wrong with them. */
export type ReadClaims = { readonly claims: TokenClaims } | { readonly problem: string };

/** A claim that says what it may not. */
class Malformed extends Error {}

/** `iss`, `aud`, `iat` and `jti` say nothing about what a token may do. Source: RFC 7519, section 4.1. */
const KNOWN = ['access', 'value_exists', 'exp', 'nbf', 'iat', 'iss', 'sub', 'aud', 'jti'];

/** payload: as it was signed, decoded from JSON. */
export function readClaims(payload: unknown): ReadClaims {
  try {
    const { access, exp, nbf, sub, value_exists } = record('claims', payload, KNOWN);
    const claims: TokenClaims = {
      subject: sub === undefined ? null : text('sub', sub),
      access: access === undefined ? { kind: 'manage' } : readAccess(access),
      valueExists: value_exists === undefined ? null : readValueExists(value_exists),
      expires: exp === undefined ? Number.POSITIVE_INFINITY : seconds('exp', exp),
      notBefore: nbf === undefined ? Number.NEGATIVE_INFINITY : seconds('nbf', nbf),
    };
    return { claims };
  } catch (error) {
    if (error instanceof Malformed) return { problem: error.message };
    throw error;
  }
}

function readAccess(access: unknown): TokenAccess {
  if (access === 'm') return { kind: 'manage' };
  if (access === 'r') return { kind: 'read' };
  if (!Array.isArray(access)) throw new Malformed('access: expected "r", "m" or a list of collections');
  const grants = new Map<string, Grant>();
  access.forEach((entry, at) => {
    const [collection, grant] = readGrant(`access[${at}]`, entry);
    if (grants.has(collection)) throw new Malformed(`access[${at}]: the collection is there already`);
    grants.set(collection, grant);
  });
  return { kind: 'collections', grants: grants satisfies Grants };
}

function readGrant(where: string, entry: unknown): [collection: string, grant: Grant] {
  const { access, collection, payload, tenant } = record(where, entry, ['collection', 'access', 'tenant', 'payload']);
  if (payload !== undefined) throw new Malformed(`${where}.payload: The 'payload' constraint is deprecated and should not be used`);
  if (access !== 'r' && access !== 'rw') throw new Malformed(`${where}.access: expected "r" or "rw"`);
  return [text(`${where}.collection`, collection), { access, tenant: tenant === undefined ? null : readTenant(`${where}.tenant`, tenant) }];
}

/** Troupe's own. */
function readTenant(where: string, tenant: unknown): Tenant {
  const { key, value } = record(where, tenant, ['key', 'value']);
  const name = text(`${where}.key`, key);
  // Only what is a key of the payload itself can be stamped and compared at once.
  if (!/^[\w-]+$/.test(name)) throw new Malformed(`${where}.key: expected a key of letters, digits, - and _`);
  return { key: name, value: plainValue(`${where}.value`, value) };
}

function readValueExists(value: unknown): ValueExists {
  const { collection, matches } = record('value_exists', value, ['collection', 'matches']);
  if (!Array.isArray(matches)) throw new Malformed('value_exists.matches: expected a list');
  return { collection: text('value_exists.collection', collection), matches: matches.map(readMatch) };
}

function readMatch(match: unknown, at: number): ValueExists['matches'][number] {
  const where = `value_exists.matches[${at}]`;
  const { key, value } = record(where, match, ['key', 'value']);
  return { key: text(`${where}.key`, key), value: plainValue(`${where}.value`, value) };
}

/** A value that a condition can ask for. */
function plainValue(where: string, value: unknown): string | number | boolean {
  if (typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value)) return value as string | number | boolean;
  throw new Malformed(`${where}: expected a text, a whole number or a boolean`);
}

/** An object that has none but these fields: a misspelt one would give more than its writer meant. */
function record(where: string, value: unknown, fields: readonly string[]): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Malformed(`${where}: expected an object`);
  const unknown = Object.keys(value).find((name) => !fields.includes(name));
  if (unknown !== undefined) throw new Malformed(`${where}: unknown name ${JSON.stringify(unknown)}, known are ${fields.join(', ')}`);
  return value as Readonly<Record<string, unknown>>;
}

function text(where: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new Malformed(`${where}: expected a text`);
  return value;
}

function seconds(where: string, value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new Malformed(`${where}: expected whole seconds since the epoch`);
  return value as number;
}

/** The access table: what each caller may do. Source: specification, «Access table»; contract, scenarios `security-*`. */

import { type ErrorCode, TroupeError } from '../../protocols/errors.js';
import type { Grants } from '../../protocols/model/scope.js';
import type { Access } from '../context/endpoint.js';
import type { Caller, Stranger } from './caller.js';

/** Why a caller may not do something. */
export interface Denial {
  readonly code: Extract<ErrorCode, 'unauthorized' | 'tokenRefused' | 'forbidden'>;
  readonly detail: string;
}

/** An operation as far as access to it is concerned: a row of `routes.ts`. */
export interface AccessRow {
  readonly access: Access;
}

/**
 * Whether a caller may carry an operation out; null: yes. collection: the one in the path, as the request names it, so a grant of an alias
 * holds for requests that use the alias; null: there is none. What is said of a collection is the same whether it exists or not.
 */
export function decideAccess(caller: Caller, { access }: AccessRow, collection: string | null): Denial | null {
  if (access === 'open') return null;
  switch (caller.kind) {
    case 'anyone':
    case 'program':
      return null;
    case 'stranger':
      return deniedStranger(caller);
    case 'key':
      return caller.setting === 'service.read_only_api_key' ? decideForReader(access) : null;
    case 'token':
      switch (caller.access.kind) {
        case 'manage':
          return null;
        case 'read':
          return decideForReader(access);
        case 'collections':
          return decideForGrants(caller.access.grants, access, collection);
        default:
          return caller.access satisfies never;
      }
    default:
      return caller satisfies never;
  }
}

/** Errors: `unauthorized`, `tokenRefused`, `forbidden`. */
export function checkAccess(caller: Caller, operation: AccessRow, collection: string | null): void {
  const denial = decideAccess(caller, operation, collection);
  if (denial !== null) throw denialError(denial);
}

export function denialError({ code, detail }: Denial): TroupeError {
  return new TroupeError(code, detail);
}

/** The collections that a caller is limited to; null: to none. */
export function grantsOf(caller: Caller): Grants | null {
  return caller.kind === 'token' && caller.access.kind === 'collections' ? caller.access.grants : null;
}

/** Whether a caller may know of a collection or alias of this name. */
export function mayKnow(caller: Caller, name: string): boolean {
  return grantsOf(caller)?.has(name) ?? true;
}

function deniedStranger({ reason, text: detail }: Stranger): Denial {
  switch (reason) {
    case 'missing':
    case 'unknown':
    case 'badClaims':
    case 'revoked':
      return { code: 'unauthorized', detail };
    case 'expired':
    case 'early':
    case 'badSignature':
      return { code: 'tokenRefused', detail };
    default:
      return reason satisfies never;
  }
}

function forbidden(detail: string): Denial {
  return { code: 'forbidden', detail };
}

/** Reads everything, changes nothing. */
function decideForReader(access: Exclude<Access, 'open'>): Denial | null {
  return access === 'writePoints' || access === 'w' || access === 'm' ? forbidden('Global manage access is required') : null;
}

function decideForGrants(grants: Grants, access: Exclude<Access, 'open'>, collection: string | null): Denial | null {
  switch (access) {
    case 'known':
      return null;
    case 'global':
    case 'm':
      return forbidden('Global access is required');
    case 'readPoints':
    case 'writePoints':
    case 'r':
    case 'w': {
      const grant = collection === null ? undefined : grants.get(collection);
      if (grant === undefined) return forbidden(`Access to collection ${collection} is required`);
      const isWrite = access === 'writePoints' || access === 'w';
      if (isWrite && grant.access !== 'rw') return forbidden(`Write access to collection ${collection} is required`);
      const isOfWhole = access === 'r' || access === 'w';
      return isOfWhole && grant.tenant !== null ? forbidden(`Access to all points of collection ${collection} is required`) : null;
    }
    default:
      return access satisfies never;
  }
}

/**
 * An update as the grants of its token let it be: a tenant changes its own points, and cannot give one away. The tenant's filter is a part
 * of each operation, so it is judged where and when the operation is applied, by every replica alike: a point that somebody else writes first
 * is not taken over.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { Filter } from '../../protocols/model/filter.js';
import { pathOf } from '../../protocols/model/json-path.js';
import type { Payload } from '../../protocols/model/payload.js';
import type { Grants, Tenant } from '../../protocols/model/scope.js';
import type { PointsSelector, UpdateOperation } from '../../protocols/model/update.js';
import type { DecodedUpdate } from '../../protocols/rest/updates.js';
import { bothFilters } from '../../query/filter/combine.js';
import { ownGrant } from './own-grant.js';
import { tenantFilter } from './tenant-filter.js';

/**
 * collection: the one to write to, as the request names it. Errors: `forbidden` without access to it; of a tenant for values of another one,
 * for changes of the value that makes a point its own, and for payload indexes.
 */
export function restrictUpdate(update: DecodedUpdate, grants: Grants, collection: string | undefined): DecodedUpdate {
  const { access, tenant } = ownGrant(grants, collection);
  if (access !== 'rw') throw new TroupeError('forbidden', `Write access to collection ${collection} is required`);
  return tenant === null ? update : { ...update, operations: update.operations.map((operation) => ofTenant(operation, tenant)) };
}

function ofTenant(operation: UpdateOperation, tenant: Tenant): UpdateOperation {
  switch (operation.kind) {
    case 'upsert': {
      // A point with this id that is another tenant's doesn't pass the filter, and stays as it is.
      const payloads = operation.batch.ids.map((_, at) => stamped(operation.batch.payloads[at] ?? {}, tenant));
      return { ...operation, batch: { ...operation.batch, payloads }, filter: own(operation.filter ?? null, tenant) };
    }
    case 'updateVectors':
      return { ...operation, filter: own(operation.filter ?? null, tenant) };
    case 'deleteVectors':
    case 'deletePoints':
      return { ...operation, selector: selected(operation.selector, tenant) };
    case 'setPayload':
      checkPlace(operation.key, tenant);
      if (operation.key === null) checkValue(operation.payload, tenant);
      return { ...operation, selector: selected(operation.selector, tenant) };
    case 'overwritePayload': {
      checkPlace(operation.key, tenant);
      const payload = operation.key === null ? stamped(operation.payload, tenant) : operation.payload;
      return { ...operation, payload, selector: selected(operation.selector, tenant) };
    }
    case 'deletePayload':
      for (const key of operation.keys) checkPlace(key, tenant);
      return { ...operation, selector: selected(operation.selector, tenant) };
    case 'clearPayload':
      return { kind: 'overwritePayload', selector: selected(operation.selector, tenant), payload: stamped({}, tenant), key: null };
    case 'createFieldIndex':
    case 'deleteFieldIndex':
      throw new TroupeError('forbidden', 'Access to all points of the collection is required to change its payload indexes');
    default:
      return operation satisfies never;
  }
}

function own(filter: Filter | null, tenant: Tenant): Filter | null {
  return bothFilters(filter, tenantFilter(tenant));
}

function selected(selector: PointsSelector, tenant: Tenant): PointsSelector {
  if (selector.kind === 'filter') return { ...selector, filter: own(selector.filter, tenant) as Filter };
  const { must, ...rest } = tenantFilter(tenant);
  return { kind: 'filter', filter: { ...rest, must: [{ kind: 'hasId', ids: selector.ids }, ...must] } };
}

/** The payload with the tenant's value. */
function stamped(payload: Payload, tenant: Tenant): Payload {
  checkValue(payload, tenant);
  return { ...payload, [tenant.key]: tenant.value };
}

function checkValue(payload: Payload, { key, value }: Tenant): void {
  if (Object.hasOwn(payload, key) && payload[key] !== value) throw foreignValue(key);
}

/** path: to a part of a payload; null: to the whole. */
function checkPlace(path: string | null, { key }: Tenant): void {
  if (path === null) return;
  const [first] = pathOf(path);
  if (first?.kind === 'key' && first.key === key) throw foreignValue(key);
}

function foreignValue(key: string): TroupeError {
  return new TroupeError('forbidden', `The token says the value of ${JSON.stringify(key)}: leave it out, or give the same one`);
}

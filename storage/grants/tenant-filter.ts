/** The points of a tenant, as a filter. */

import type { Filter } from '../../protocols/model/filter.js';
import type { Tenant } from '../../protocols/model/scope.js';

/** A point whose value is a list belongs to each tenant in it. */
export function tenantFilter({ key, value }: Tenant): Filter {
  return { must: [{ kind: 'match', key, match: { kind: 'value', value } }], should: [], mustNot: [], minShould: null };
}

/** Values that a filter demands of every match. Pure. */

import type { FieldSchema } from '../../protocols/model/collection.js';
import type { Filter } from '../../protocols/model/filter.js';
import { lookupFor, type TermValue } from './lookup.js';

export interface DemandedValue {
  readonly key: string;
  readonly value: TermValue;
}

/**
 * Single values of indexed fields that a row must have to pass, as indexes hold them.
 * schemaOf: schema of a field's index; undefined for fields without one.
 */
export function demandedValues(filter: Filter, schemaOf: (key: string) => FieldSchema | undefined): DemandedValue[] {
  return filter.must.flatMap((condition): DemandedValue[] => {
    if (condition.kind === 'filter') return demandedValues(condition.filter, schemaOf);
    if (condition.kind !== 'match') return [];
    const schema = schemaOf(condition.key);
    const lookup = schema && lookupFor(schema, condition);
    const [part, ...others] = lookup?.parts ?? [];
    if (lookup?.complement !== false || part?.kind !== 'values' || others.length > 0 || part.values.length !== 1) return [];
    return [{ key: condition.key, value: part.values[0] as TermValue }];
  });
}

/** Which payload indexes would have spared the reading of payloads. Pure. */

import type { FieldSchema, FieldType } from '../../protocols/model/collection.js';
import type { Condition, FieldCondition, Filter, Match } from '../../protocols/model/filter.js';
import { nestedPath } from '../../protocols/model/json-path.js';

export interface WantedIndex {
  /** Path of the payload, as `PUT /collections/{c}/index` takes it. */
  readonly field: string;
  readonly type: FieldType;
  /** The first one that lacks it, on the field's whole path. */
  readonly condition: FieldCondition;
}

/**
 * The indexes that these conditions lack, each field once. conditions: those that payloads had to be read for. Fields with an index of any
 * type are left out, and so are conditions that do not tell the type of the values (`is_empty`, `values_count`).
 */
export function wantedIndexes(
  conditions: readonly Condition[],
  schemaOf: (field: string) => FieldSchema | undefined,
): readonly WantedIndex[] {
  const wanted = new Map<string, WantedIndex>();
  const visit = (condition: Condition, within: string): void => {
    switch (condition.kind) {
      case 'nested':
        for (const inner of conditionsOf(condition.filter)) visit(inner, keyOf(within, condition.key));
        return;
      case 'filter':
        for (const inner of conditionsOf(condition.filter)) visit(inner, within);
        return;
      case 'match':
        add(within, condition, typeForMatch(condition.match));
        return;
      case 'range':
        add(within, condition, 'float');
        return;
      case 'datetimeRange':
        add(within, condition, 'datetime');
        return;
      case 'geo':
        add(within, condition, 'geo');
        return;
      default:
        return;
    }
  };
  const add = (within: string, condition: FieldCondition, type: FieldType): void => {
    const field = keyOf(within, condition.key);
    if (!wanted.has(field) && schemaOf(field) === undefined) wanted.set(field, { field, type, condition: { ...condition, key: field } });
  };
  for (const condition of conditions) visit(condition, '');
  return [...wanted.values()];
}

function keyOf(within: string, key: string): string {
  return within === '' ? key : nestedPath(within, key);
}

/** The conditions of a filter, those of filters in it as they are. */
export function conditionsOf({ minShould, must, mustNot, should }: Filter): readonly Condition[] {
  return [...must, ...should, ...mustNot, ...(minShould?.conditions ?? [])];
}

function typeForMatch(match: Match): FieldType {
  switch (match.kind) {
    case 'value':
      return typeOfValue(match.value);
    case 'any':
    case 'except':
      return typeOfValue(match.values[0] ?? '');
    case 'text':
    case 'textAny':
    case 'phrase':
      return 'text';
    default:
      return match satisfies never;
  }
}

function typeOfValue(value: string | number | bigint | boolean): FieldType {
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'string' ? 'keyword' : 'integer';
}

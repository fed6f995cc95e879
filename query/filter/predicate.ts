/** Filters as tests on single payloads. */

import type { FieldSchema } from '../../protocols/model/collection.js';
import type { Condition, Filter } from '../../protocols/model/filter.js';
import { arrayPath, nestedPath, pathOf } from '../../protocols/model/json-path.js';
import type { JsonValue, Payload } from '../../protocols/model/payload.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { comparesTokens, ruledTest } from './lookup.js';
import { bareNullTest, fieldTest, someValue } from './values.js';

/** Whether a row passes. `subject`: its payload, or an element of it within a nested condition; `payload`: all of it. */
export type RowTest = (row: number, subject: JsonValue, payload: Payload) => boolean;

export interface PredicateContext {
  /** Schema of the index of a field: it rules some answers. */
  fieldSchema?(key: string): FieldSchema | undefined;
  /** Test of a condition that needs no payload (`hasId`, `hasVector`, one that an index has answered); undefined for the others. */
  known(condition: Condition): ((row: number) => boolean) | undefined;
}

/** One point on its own. */
export interface SinglePoint {
  readonly id: PointId;
  readonly payload: Payload;
  hasVector(name: string): boolean;
}

/** Whether one point passes the filter. `fieldSchema`: the replica's indexes, as in `FilterSource`. */
export function matchesPayload(filter: Filter, point: SinglePoint, fieldSchema?: (key: string) => FieldSchema | undefined): boolean {
  const known = (condition: Condition): (() => boolean) | undefined => {
    if (condition.kind === 'hasId') {
      const listed = condition.ids.includes(point.id);
      return () => listed;
    }
    if (condition.kind === 'hasVector') return () => point.hasVector(condition.name);
    return undefined;
  };
  return compileFilter(filter, fieldSchema === undefined ? { known } : { known, fieldSchema })(0, point.payload, point.payload);
}

/** The filter as one test. */
export function compileFilter(filter: Filter, context: PredicateContext): RowTest {
  return clauses(filter, (condition) => compileCondition(condition, context));
}

/** The condition as a test. */
export function compileCondition(condition: Condition, context: PredicateContext): RowTest {
  const known = context.known(condition);
  if (known !== undefined) return known;
  const key = 'key' in condition ? condition.key : undefined;
  const schema = key === undefined ? undefined : context.fieldSchema?.(key);
  switch (condition.kind) {
    case 'filter':
      return compileFilter(condition.filter, context);
    case 'nested':
      return nestedTest(condition.key, condition.filter, context);
    case 'hasId':
    case 'hasVector':
      return never;
    case 'isEmpty':
      return onSubject(fieldTest({ kind: 'fieldIsEmpty', key: condition.key, isEmpty: true }));
    case 'isNull':
      // With an index the condition looks into arrays, like the field form.
      if (schema !== undefined) return onSubject(fieldTest({ kind: 'fieldIsNull', key: condition.key, isNull: true }));
      return onSubject(bareNullTest(condition.key));
    default: {
      const ruled = schema === undefined ? null : ruledTest(schema, condition);
      return onSubject(ruled ?? fieldTest(condition));
    }
  }
}

/** Some element of the array at `key` is an object that passes the filter by itself. Point ids and vectors belong to no element. */
function nestedTest(key: string, filter: Filter, context: PredicateContext): RowTest {
  const elements = arrayPath(key);
  const path = pathOf(elements);
  const test = clauses(filter, (condition) => compileNested(condition, elements, context));
  return (row, subject, payload) =>
    someValue(
      subject,
      path,
      (element) => typeof element === 'object' && element !== null && !Array.isArray(element) && test(row, element, payload),
    );
}

/** A condition on an element of the array at `elements` (a full path from the payload's root). */
function compileNested(condition: Condition, elements: string, context: PredicateContext): RowTest {
  switch (condition.kind) {
    case 'filter':
      return clauses(condition.filter, (inner) => compileNested(inner, elements, context));
    case 'nested': {
      const inner = arrayPath(condition.key);
      const path = pathOf(inner);
      const test = clauses(condition.filter, (one) => compileNested(one, nestedPath(elements, inner), context));
      return (row, subject, payload) =>
        someValue(
          subject,
          path,
          (element) => typeof element === 'object' && element !== null && !Array.isArray(element) && test(row, element, payload),
        );
    }
    case 'hasId':
    case 'hasVector':
      return never;
    case 'isEmpty': {
      const test = fieldTest({ kind: 'fieldIsEmpty', key: condition.key, isEmpty: true });
      const fullKey = nestedPath(elements, condition.key);
      if (context.fieldSchema?.(fullKey) === undefined) return onSubject(test);
      // With an index on the full path the whole row must be empty there. Source: scenario filter-nested, indexed-nested-is-empty.
      const rowTest = fieldTest({ kind: 'fieldIsEmpty', key: fullKey, isEmpty: true });
      return (_row, subject, payload) => test(subject) && rowTest(payload);
    }
    case 'isNull':
      return onSubject(bareNullTest(condition.key));
    default: {
      const schema = comparesTokens(condition) ? context.fieldSchema?.(nestedPath(elements, condition.key)) : undefined;
      // The words of an element are compared as those of the field are.
      const ruled = schema?.type === 'text' ? ruledTest(schema, condition) : null;
      return onSubject(ruled ?? fieldTest(condition));
    }
  }
}

function clauses(filter: Filter, compile: (condition: Condition) => RowTest): RowTest {
  const must = filter.must.map(compile);
  const should = filter.should.map(compile);
  const mustNot = filter.mustNot.map(compile);
  const minShould =
    filter.minShould === null ? null : { tests: filter.minShould.conditions.map(compile), minCount: filter.minShould.minCount };
  if (must.length === 1 && should.length === 0 && mustNot.length === 0 && minShould === null) return must[0] as RowTest;
  return (row, subject, payload) => {
    for (const test of must) if (!test(row, subject, payload)) return false;
    for (const test of mustNot) if (test(row, subject, payload)) return false;
    if (should.length > 0 && !should.some((test) => test(row, subject, payload))) return false;
    return minShould === null || reaches(minShould.tests, minShould.minCount, row, subject, payload);
  };
}

function reaches(tests: readonly RowTest[], minCount: number, row: number, subject: JsonValue, payload: Payload): boolean {
  let count = 0;
  for (const test of tests) {
    if (count >= minCount) return true;
    if (test(row, subject, payload)) count++;
  }
  return count >= minCount;
}

function onSubject(test: (subject: JsonValue) => boolean): RowTest {
  return (_row, subject) => test(subject);
}

function never(): boolean {
  return false;
}

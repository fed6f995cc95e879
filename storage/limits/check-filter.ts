/** Limits of filters and formulas: how many conditions, how large each may be, and which payload keys need an index. */

import type { FieldSchema, StrictModeConfig } from '../../protocols/model/collection.js';
import type { Condition, FieldCondition, Filter, Match, MatchValue } from '../../protocols/model/filter.js';
import type { RequestLimits } from '../../protocols/model/limits.js';
import { uuidFrom } from '../../protocols/model/point-id.js';
import type { Expression } from '../../protocols/model/query.js';
import { overLimit } from './exceeded.js';

/** The limit that asks for indexes: that of reads, that of updates; null: none does. */
export type FilterUse = 'unindexed_filtering_retrieve' | 'unindexed_filtering_update' | null;

/** A payload key, and the kinds of index of which it needs one. */
interface Need {
  readonly key: string;
  readonly kinds: readonly IndexKind[];
}

const PHRASES = 'text (with phrase_matching: true)';

type IndexKind = FieldSchema['type'] | typeof PHRASES;

/** In the order in which messages list them. */
const ANY: readonly IndexKind[] = ['bool', 'datetime', 'float', 'geo', 'integer', 'keyword', 'text', PHRASES, 'uuid'];

/** Errors: `badRequest` for the first limit that the filter goes beyond. */
export function checkFilter(filter: Filter | null, limits: RequestLimits, use: FilterUse): void {
  if (filter === null) return;
  const { condition_max_size: sizeMax, filter_max_conditions: countMax } = limits.strict;
  if (use !== null) for (const need of needsOf(filter, '')) checkIndexed(need, limits, use, 'filter');
  if (countMax !== undefined) {
    const count = countConditions(filter);
    if (count > countMax) {
      const help = 'Reduce the amount of conditions of your filter.';
      throw overLimit('filter_max_conditions', `Filter condition limit reached (${count} > ${countMax}). Help: ${help}`);
    }
  }
  if (sizeMax !== undefined) for (const condition of leavesOf(filter)) checkSize(condition, sizeMax);
}

/** The same of a formula of a query. */
export function checkFormula(expression: Expression, limits: RequestLimits): void {
  const { condition_max_size: sizeMax } = limits.strict;
  for (const part of partsOf(expression)) {
    for (const need of formulaNeeds(part)) checkIndexed(need, limits, 'unindexed_filtering_retrieve', 'formula expression');
    if (part.kind === 'condition' && sizeMax !== undefined) for (const leaf of leavesIn(part.condition)) checkSize(leaf, sizeMax);
  }
}

/** Whether the limit asks for indexes at all. */
export function asksForIndexes(strict: StrictModeConfig, use: Exclude<FilterUse, null>): boolean {
  return strict[use] === false;
}

function checkIndexed({ key, kinds }: Need, { indexes, strict }: RequestLimits, use: Exclude<FilterUse, null>, what: string): void {
  if (indexes === null || !asksForIndexes(strict, use)) return;
  const schema = indexes.get(key);
  if (schema !== undefined && kinds.some((kind) => isOfKind(schema, kind))) return;
  const help = `Create an index for this key or use a different ${what}.`;
  const of = `one of the following types: [${kinds.join(', ')}]`;
  throw overLimit(use, `Index required but not found for "${key}" of ${of}. Help: ${help}`);
}

function isOfKind({ params, type }: FieldSchema, kind: IndexKind): boolean {
  return kind === PHRASES ? type === 'text' && params?.phrase_matching === true : type === kind;
}

/** Conditions on payload keys, ids and vectors: groups of conditions don't count themselves. */
function countConditions(filter: Filter): number {
  let count = 0;
  for (const _ of leavesOf(filter)) count += 1;
  return count;
}

function* leavesOf(filter: Filter): Generator<Condition> {
  for (const condition of conditionsOf(filter)) yield* leavesIn(condition);
}

function* leavesIn(condition: Condition): Generator<Condition> {
  if (condition.kind === 'filter' || condition.kind === 'nested') yield* leavesOf(condition.filter);
  else yield condition;
}

function conditionsOf({ minShould, must, mustNot, should }: Filter): readonly Condition[] {
  return [...must, ...should, ...mustNot, ...(minShould?.conditions ?? [])];
}

function checkSize(condition: Condition, max: number): void {
  const size = sizeOf(condition);
  if (size <= max) return;
  throw overLimit('condition_max_size', `Condition size limit reached (${size} > ${max}). Help: Reduce the size of your condition.`);
}

/** Values, ids or corners. */
function sizeOf(condition: Condition): number {
  if (condition.kind === 'hasId') return condition.ids.length;
  if (condition.kind === 'match') {
    const { match } = condition;
    return match.kind === 'any' || match.kind === 'except' ? match.values.length : 1;
  }
  if (condition.kind !== 'geo' || condition.area.kind !== 'polygon') return 1;
  const { exterior, interiors } = condition.area;
  return interiors.reduce((sum, ring) => sum + ring.length, exterior.length);
}

// ------------------------------------------------------------------ indexes

/** prefix: the list of objects that a nested filter looks into. */
function* needsOf(filter: Filter, prefix: string): Generator<Need> {
  for (const condition of conditionsOf(filter)) yield* needsIn(condition, prefix);
}

function* needsIn(condition: Condition, prefix: string): Generator<Need> {
  switch (condition.kind) {
    case 'filter':
      yield* needsOf(condition.filter, prefix);
      return;
    case 'nested':
      yield* needsOf(condition.filter, `${prefix}${condition.key.endsWith('[]') ? condition.key : `${condition.key}[]`}.`);
      return;
    case 'hasId':
    case 'hasVector':
      return;
    case 'isEmpty':
    case 'isNull':
      yield { key: prefix + condition.key, kinds: ANY };
      return;
    default:
      for (const kinds of kindsFor(condition)) yield { key: prefix + condition.key, kinds };
  }
}

/** For each kind of value that the condition asks for, the indexes that find it. */
function kindsFor(condition: FieldCondition): readonly (readonly IndexKind[])[] {
  switch (condition.kind) {
    case 'match':
      return kindsForMatch(condition.match);
    case 'range':
      return [['float', 'integer']];
    case 'datetimeRange':
      return [['datetime']];
    case 'geo':
      return [['geo']];
    case 'valuesCount':
    case 'fieldIsEmpty':
    case 'fieldIsNull':
      return [ANY];
    default:
      return condition satisfies never;
  }
}

function kindsForMatch(match: Match): readonly (readonly IndexKind[])[] {
  switch (match.kind) {
    case 'value':
      return [kindsForValue(match.value)];
    case 'any':
    case 'except': {
      if (match.values.length === 0) return [['integer', 'keyword', 'uuid']];
      const numbers = match.values.filter((value) => typeof value !== 'string');
      const texts = match.values.filter((value) => typeof value === 'string');
      const areUuids = texts.every(isUuid);
      return [
        ...(numbers.length > 0 ? [kindsForValue(numbers[0] as number)] : []),
        ...(texts.length > 0 ? [areUuids ? KEYWORD_OR_UUID : KEYWORD] : []),
      ];
    }
    case 'text':
    case 'textAny':
      return [['text']];
    case 'phrase':
      return [[PHRASES]];
    default:
      return match satisfies never;
  }
}

const KEYWORD: readonly IndexKind[] = ['keyword'];
const KEYWORD_OR_UUID: readonly IndexKind[] = ['keyword', 'uuid'];

function kindsForValue(value: MatchValue): readonly IndexKind[] {
  if (typeof value === 'string') return isUuid(value) ? KEYWORD_OR_UUID : KEYWORD;
  return typeof value === 'boolean' ? ['bool'] : ['integer'];
}

function isUuid(text: string): boolean {
  return uuidFrom(text) !== undefined;
}

// ------------------------------------------------------------------ formulas

function* formulaNeeds(part: Expression): Generator<Need> {
  if (part.kind === 'variable') yield { key: part.path, kinds: ['float', 'integer'] };
  else if (part.kind === 'geoDistance') yield { key: part.path, kinds: ['geo'] };
  else if (part.kind === 'datetimeKey') yield { key: part.path, kinds: ['datetime'] };
  else if (part.kind === 'condition') yield* needsIn(part.condition, '');
}

/** The expression and all within it. */
function* partsOf(expression: Expression): Generator<Expression> {
  yield expression;
  for (const inner of innerOf(expression)) yield* partsOf(inner);
}

function innerOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'mult':
    case 'sum':
      return expression.terms;
    case 'neg':
    case 'abs':
    case 'sqrt':
    case 'exp':
    case 'log10':
    case 'ln':
      return [expression.of];
    case 'div':
      return [expression.left, expression.right];
    case 'pow':
      return [expression.base, expression.exponent];
    case 'expDecay':
    case 'gaussDecay':
    case 'linDecay':
      return expression.target === null ? [expression.x] : [expression.x, expression.target];
    case 'constant':
    case 'score':
    case 'variable':
    case 'condition':
    case 'geoDistance':
    case 'datetime':
    case 'datetimeKey':
      return [];
    default:
      return expression satisfies never;
  }
}

/**
 * Which rows of a segment pass a filter, as a bitset.
 *
 * First every condition gets bounds from its index: rows that pass for sure and rows that may. They are combined
 * through the whole filter, and only rows that are still open then have their payload read, once each, for all
 * conditions together. A row that an index has decided is never read.
 */

import type { FieldSchema } from '../../protocols/model/collection.js';
import type { AnsweredBy } from '../../protocols/model/explanation.js';
import type { Condition, FieldCondition, Filter } from '../../protocols/model/filter.js';
import { nestedPath } from '../../protocols/model/json-path.js';
import {
  clearBehind,
  countBits,
  emptyBits,
  forEachBit,
  fullBits,
  hasBit,
  intersect,
  isEmptyBits,
  setBit,
  subtract,
  unite,
  wordCount,
} from './bits.js';
import type { ConditionCache } from './cache.js';
import { cacheText } from './cache-text.js';
import { compileCondition, compileFilter, type PredicateContext, type RowTest } from './predicate.js';
import type { FieldIndex, FilterSource } from './source.js';

/** Longer filters (long lists of ids) are not worth their place in the cache. See `cacheText`. */
const CACHED_KEY_LENGTH_MAX = 4096;
/** Rows read between two looks at the clock. */
const CHECKPOINT_ROWS = 64;

/** yes ⊆ rows that pass ⊆ maybe. The same array where they are equal. Never changed once made. */
interface Bounds {
  readonly yes: Uint32Array;
  readonly maybe: Uint32Array;
}

type MatchQuality = ReturnType<FieldIndex['match']>;

interface Evaluation {
  readonly source: FilterSource;
  readonly cache: ConditionCache | undefined;
  /** Rows below are decided already. */
  readonly from: number;
  readonly schemaOf: (key: string) => FieldSchema | undefined;
  /** Asked for once, whatever number of conditions there are. */
  readonly indexOf: (key: string) => FieldIndex | undefined;
  /** Exact bits of conditions that an index (or the cache) has answered. */
  readonly answered: Map<Condition, Uint32Array>;
  /** Conditions that need payloads. */
  readonly open: Condition[];
  /** Bits of no row, and of all; never changed. */
  readonly none: () => Uint32Array;
  readonly all: () => Uint32Array;
  /** Of the bits of all conditions. */
  heldBytes: number;
}

/** Bitsets that are kept of a condition: its own, and that of all conditions so far. */
const BITS_PER_CONDITION = 2;
/** Values of a condition that an index is asked for between two looks at the clock. */
const CHECKPOINT_VALUES = 512;
/** Conditions tested on payloads between two looks at the clock: with many conditions it is looked at after fewer rows. */
const CHECKPOINT_TESTS = 65_536;

/**
 * Bits of the rows that pass, deleted ones included (the caller masks them). Not to be changed: the cache may have them, too.
 * Pure but for the cache. Reads payloads only of rows that no index decides. Errors: what `source.checkpoint` and `source.claim` throw.
 */
export function evaluateFilter(filter: Filter, source: FilterSource, cache?: ConditionCache): Uint32Array {
  const key = cache === undefined ? undefined : filterKey(filter, source);
  if (cache === undefined || key === undefined) return evaluateFrom(filter, source, undefined, 0);
  const cached = cache.get(key);
  cache.asked(cached !== undefined);
  const from = cached === undefined ? 0 : Math.min(cached.rows, source.rows);
  source.notes?.cached(cached === undefined ? 'miss' : from === source.rows ? 'hit' : 'extended');
  if (cached?.rows === source.rows) return cached.bits;
  if (cached !== undefined && from === source.rows) return firstRows(cached.bits, source.rows);
  const bits = evaluateFrom(filter, source, cache, from);
  if (cached !== undefined) unite(bits, cached.bits);
  cache.set(key, { rows: source.rows, bits });
  return bits;
}

/**
 * A filter over the rows of a source that is decided in portions: what indexes say at once, then one payload after the other. As long as
 * the source's rows stay what they are, it does not matter what happens between the portions.
 */
export class PortionedFilter {
  /** Bits of the rows that pass, as far as they are decided; deleted ones included. */
  readonly passed: Uint32Array;
  private readonly undecided: Uint32Array;
  /** Null: indexes have decided all rows. */
  private readonly test: RowTest | null;
  /** Conditions that need payloads. */
  private readonly open: readonly Condition[];
  private next = 0;

  constructor(
    filter: Filter,
    private readonly source: FilterSource,
  ) {
    const evaluation = evaluationOf(source, undefined, 0);
    const { maybe, yes } = filterBounds(filter, evaluation);
    this.passed = yes.slice();
    this.undecided = maybe.slice();
    subtract(this.undecided, yes);
    this.test = isEmptyBits(this.undecided) ? null : compileFilter(filter, contextOf(evaluation));
    this.open = evaluation.open;
  }

  /** Number of rows whose payload has to be read. */
  get undecidedRows(): number {
    return countBits(this.undecided);
  }

  /** Reads the payloads of up to `countMax` rows. wanted: rows that it says no to need no answer. Returns whether all rows are decided. */
  decide(countMax: number, wanted: (row: number) => boolean): boolean {
    const { source, test } = this;
    if (test === null) return true;
    const ended = source.beginScan?.(this.open, Math.min(countMax, this.undecidedRows));
    try {
      return this.decideBy(test, countMax, wanted);
    } finally {
      ended?.();
    }
  }

  private decideBy(test: RowTest, countMax: number, wanted: (row: number) => boolean): boolean {
    const { passed, source, undecided } = this;
    for (let count = 0; this.next < source.rows; this.next++) {
      const row = this.next;
      if ((row & 31) === 0 && undecided[row >>> 5] === 0) this.next += 31;
      else if (hasBit(undecided, row) && wanted(row)) {
        if (count++ === countMax) return false;
        const payload = source.payload(row);
        if (test(row, payload, payload)) setBit(passed, row);
      }
    }
    return true;
  }
}

function evaluationOf(source: FilterSource, cache: ConditionCache | undefined, from: number): Evaluation {
  const schemaOf = (key: string): FieldSchema | undefined => source.fieldSchema?.(key);
  const indexes = new Map<string, FieldIndex | undefined>();
  const indexOf = (key: string): FieldIndex | undefined => {
    if (!indexes.has(key)) indexes.set(key, source.fieldIndex(key));
    return indexes.get(key);
  };
  const none = once(() => emptyBits(source.rows));
  const all = once(() => fullBits(source.rows));
  return { source, cache, from, schemaOf, indexOf, answered: new Map(), open: [], none, all, heldBytes: 0 };
}

function once<Value>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Bits of the rows `from` <= row < rows that pass. */
function evaluateFrom(filter: Filter, source: FilterSource, cache: ConditionCache | undefined, from: number): Uint32Array {
  const evaluation = evaluationOf(source, cache, from);
  try {
    return decidedRows(filter, evaluation);
  } finally {
    source.giveBack?.(evaluation.heldBytes);
  }
}

function decidedRows(filter: Filter, evaluation: Evaluation): Uint32Array {
  const { from, source } = evaluation;
  const bounds = filterBounds(filter, evaluation);
  const result = bounds.yes.slice();
  if (bounds.yes !== bounds.maybe) {
    const undecided = bounds.maybe.slice();
    subtract(undecided, bounds.yes);
    if (from > 0) intersect(undecided, fullBits(source.rows, from));
    readPayloads(filter, evaluation, undecided, result);
  }
  if (from > 0) intersect(result, fullBits(source.rows, from));
  return result;
}

/** Sets the bits of those `undecided` rows in `result` whose payload passes. */
function readPayloads(filter: Filter, evaluation: Evaluation, undecided: Uint32Array, result: Uint32Array): void {
  const { source } = evaluation;
  const count = countBits(undecided);
  if (count === 0) return;
  source.claim?.({ kind: 'payloads', count });
  source.notes?.read(count);
  const context = contextOf(evaluation);
  const test = compileFilter(filter, context);
  // When every row is read anyway, each open condition is decided for itself too, so that other filters can use it.
  const keepers = evaluation.from === 0 && count === source.rows ? keepersOf(evaluation, context) : [];
  const ended = source.beginScan?.(evaluation.open, count);
  try {
    readRows(undecided, evaluation, (row, payload) => {
      if (test(row, payload, payload)) setBit(result, row);
      for (const keeper of keepers) if (keeper.test(row, payload, payload)) setBit(keeper.bits, row);
    });
  } finally {
    ended?.();
  }
  for (const { key, bits } of keepers) evaluation.cache?.set(key, { rows: source.rows, bits });
}

interface Keeper {
  readonly key: string;
  readonly test: RowTest;
  readonly bits: Uint32Array;
}

function keepersOf(evaluation: Evaluation, context: PredicateContext): Keeper[] {
  if (evaluation.cache === undefined) return [];
  const keepers = new Map<string, Keeper>();
  for (const condition of evaluation.open) {
    const key = conditionKey(condition, evaluation.source);
    if (key === undefined || keepers.has(key)) continue;
    keepers.set(key, { key, test: compileCondition(condition, context), bits: emptyBits(evaluation.source.rows) });
  }
  return [...keepers.values()];
}

function contextOf(evaluation: Evaluation): PredicateContext {
  return {
    fieldSchema: evaluation.schemaOf,
    known: (condition) => {
      const bits = evaluation.answered.get(condition);
      return bits === undefined ? undefined : (row) => hasBit(bits, row);
    },
  };
}

function readRows(
  rows: Uint32Array,
  { open, source }: Evaluation,
  visit: (row: number, payload: ReturnType<FilterSource['payload']>) => void,
): void {
  const checkpointRows = Math.max(1, Math.min(CHECKPOINT_ROWS, Math.floor(CHECKPOINT_TESTS / (open.length + 1))));
  let seen = 0;
  forEachBit(rows, (row) => {
    if (++seen % checkpointRows === 0) source.checkpoint?.();
    visit(row, source.payload(row));
  });
}

// ------------------------------------------------------------------ bounds

function filterBounds(filter: Filter, evaluation: Evaluation): Bounds {
  const { rows } = evaluation.source;
  const passing = new GatheredBounds(fullBits(rows));
  for (const condition of cheapFirst(filter.must, evaluation)) {
    passing.and(conditionBounds(condition, evaluation));
    if (passing.isEmpty) return passing;
  }
  for (const condition of filter.mustNot) passing.andNot(conditionBounds(condition, evaluation));
  if (filter.should.length > 0) {
    const some = new GatheredBounds(emptyBits(rows));
    for (const condition of filter.should) some.or(conditionBounds(condition, evaluation));
    passing.and(some);
  }
  if (filter.minShould !== null) {
    const { conditions, minCount } = filter.minShould;
    passing.and(
      atLeast(
        conditions.map((condition) => conditionBounds(condition, evaluation)),
        minCount,
        rows,
      ),
    );
  }
  return passing;
}

/** Bounds that those of conditions go into, in place: of thousands of conditions no copies are made. Never changed once they are given away. */
class GatheredBounds implements Bounds {
  readonly yes: Uint32Array;
  maybe: Uint32Array;

  /** bits: its own from now on. */
  constructor(bits: Uint32Array) {
    this.yes = bits;
    this.maybe = bits;
  }

  get isEmpty(): boolean {
    return isEmptyBits(this.maybe);
  }

  and(other: Bounds): void {
    this.combine(intersect, other.yes, other.maybe);
  }

  andNot(other: Bounds): void {
    this.combine(subtract, other.maybe, other.yes);
  }

  or(other: Bounds): void {
    this.combine(unite, other.yes, other.maybe);
  }

  private combine(operate: (target: Uint32Array, other: Uint32Array) => void, yes: Uint32Array, maybe: Uint32Array): void {
    if (yes !== maybe && this.yes === this.maybe) this.maybe = this.yes.slice();
    operate(this.yes, yes);
    if (this.maybe !== this.yes) operate(this.maybe, maybe);
  }
}

/** Conditions that leave few rows first: when none is left, the others are not looked at. */
function cheapFirst(conditions: readonly Condition[], { indexOf, source }: Evaluation): readonly Condition[] {
  if (conditions.length < 2) return conditions;
  const most = (condition: Condition): number => {
    source.checkpoint?.();
    if (condition.kind === 'hasId') return condition.ids.length;
    const asked = indexCondition(condition);
    const bound = asked === undefined ? undefined : indexOf(asked.key)?.cardinality(asked)?.max;
    return bound ?? source.rows + 1;
  };
  const order = conditions.map((condition, at) => ({ condition, at, most: most(condition) }));
  return order.sort((a, b) => a.most - b.most || a.at - b.at).map((entry) => entry.condition);
}

function conditionBounds(condition: Condition, evaluation: Evaluation): Bounds {
  const { source } = evaluation;
  const answered = evaluation.answered.get(condition);
  if (answered !== undefined) return same(answered);
  source.checkpoint?.();
  const bytes = BITS_PER_CONDITION * 4 * wordCount(source.rows);
  evaluation.heldBytes += bytes;
  source.hold?.(bytes);
  switch (condition.kind) {
    case 'filter':
      return filterBounds(condition.filter, evaluation);
    case 'hasId': {
      const bits = emptyBits(source.rows);
      for (const row of source.rowsWithIds(condition.ids)) if (row < source.rows) setBit(bits, row);
      return answer(condition, bits, evaluation, 'index');
    }
    case 'hasVector': {
      const bits = emptyBits(source.rows);
      for (let row = 0; row < source.rows; row++) if (source.hasVector(condition.name, row)) setBit(bits, row);
      return answer(condition, bits, evaluation, 'index');
    }
    case 'nested':
      return (
        fromCache(condition, evaluation) ?? openBounds(condition, nestedCandidates(condition.key, condition.filter, evaluation), evaluation)
      );
    default: {
      const asked = indexCondition(condition) as FieldCondition;
      const index = evaluation.indexOf(asked.key);
      if (index === undefined) return fromCache(condition, evaluation) ?? openBounds(condition, undefined, evaluation);
      const bits = emptyBits(source.rows);
      const quality = matchInPortions(index, asked, bits, source);
      if (quality === 'exact') return answer(condition, bits, evaluation, 'index');
      return fromCache(condition, evaluation) ?? openBounds(condition, quality === 'superset' ? bits : undefined, evaluation);
    }
  }
}

/** As `FieldIndex.match`; long lists of values are looked up in portions, with a look at the clock before each. */
function matchInPortions(index: FieldIndex, condition: FieldCondition, bits: Uint32Array, source: FilterSource): MatchQuality {
  if (condition.kind !== 'match' || condition.match.kind !== 'any' || condition.match.values.length <= CHECKPOINT_VALUES)
    return index.match(condition, bits);
  const { values } = condition.match;
  const some = emptyBits(source.rows);
  let worst: MatchQuality = 'exact';
  for (let from = 0; from < values.length; from += CHECKPOINT_VALUES) {
    source.checkpoint?.();
    some.fill(0);
    const portion = { ...condition, match: { ...condition.match, values: values.slice(from, from + CHECKPOINT_VALUES) } };
    const quality = index.match(portion, some);
    if (quality === 'unable') return quality;
    if (quality === 'superset') worst = quality;
    unite(bits, some);
  }
  return worst;
}

/** The condition an index is asked for; undefined for conditions on no field. */
export function indexCondition(condition: Condition): FieldCondition | undefined {
  switch (condition.kind) {
    case 'isEmpty':
      return { kind: 'fieldIsEmpty', key: condition.key, isEmpty: true };
    case 'isNull':
      return { kind: 'fieldIsNull', key: condition.key, isNull: true };
    case 'hasId':
    case 'hasVector':
    case 'nested':
    case 'filter':
      return undefined;
    default:
      return condition;
  }
}

function answer(condition: Condition, bits: Uint32Array, evaluation: Evaluation, by: AnsweredBy): Bounds {
  evaluation.source.notes?.answered(condition, by, bits);
  evaluation.answered.set(condition, bits);
  return same(bits);
}

function openBounds(condition: Condition, candidates: Uint32Array | undefined, evaluation: Evaluation): Bounds {
  evaluation.open.push(condition);
  evaluation.source.notes?.answered(condition, candidates === undefined ? 'payload' : 'index_and_payload', null);
  return { yes: evaluation.none(), maybe: candidates ?? evaluation.all() };
}

/** Rows that may pass a nested condition: each value it must match has to stand somewhere in the row. */
function nestedCandidates(key: string, filter: Filter, evaluation: Evaluation): Uint32Array | undefined {
  const { source } = evaluation;
  let candidates: Uint32Array | undefined;
  for (const condition of filter.must) {
    if (condition.kind !== 'match' || condition.match.kind === 'except') continue;
    const fullKey = nestedPath(key, condition.key);
    const index = evaluation.indexOf(fullKey);
    if (index === undefined) continue;
    const bits = emptyBits(source.rows);
    if (index.match({ ...condition, key: fullKey }, bits) === 'unable') continue;
    if (candidates === undefined) candidates = bits;
    else intersect(candidates, bits);
  }
  return candidates;
}

/** Bits of a condition that the cache knows, brought up to date. */
function fromCache(condition: Condition, evaluation: Evaluation): Bounds | undefined {
  const { cache, source } = evaluation;
  // A filter that is only carried on reads the few new payloads once, for all its conditions together.
  if (cache === undefined || evaluation.from > 0) return undefined;
  const key = conditionKey(condition, source);
  const cached = key === undefined ? undefined : cache.get(key);
  if (key === undefined || cached === undefined) return undefined;
  const bits = firstRows(cached.bits, source.rows);
  if (cached.rows < source.rows) {
    const test = compileCondition(condition, contextOf(evaluation));
    source.notes?.read(source.rows - cached.rows);
    readRows(fullBits(source.rows, cached.rows), evaluation, (row, payload) => {
      if (test(row, payload, payload)) setBit(bits, row);
    });
    cache.set(key, { rows: source.rows, bits });
  }
  return answer(condition, bits, evaluation, 'cache');
}

/** A copy for `rows` rows of bits that may have more or fewer. */
function firstRows(bits: Uint32Array, rows: number): Uint32Array {
  const words = wordCount(rows);
  if (bits.length < words) {
    const longer = emptyBits(rows);
    longer.set(bits);
    return longer;
  }
  const copy = bits.slice(0, words);
  clearBehind(copy, rows);
  return copy;
}

function same(bits: Uint32Array): Bounds {
  return { yes: bits, maybe: bits };
}

function atLeast(all: readonly Bounds[], minCount: number, rows: number): Bounds {
  const yes = reached(
    all.map((bounds) => bounds.yes),
    minCount,
    rows,
  );
  if (all.every((bounds) => bounds.yes === bounds.maybe)) return same(yes);
  const maybe = reached(
    all.map((bounds) => bounds.maybe),
    minCount,
    rows,
  );
  return { yes, maybe };
}

/** Rows that are set in `minCount` of the sets or more. Counts all rows at once, one bit of the counts per plane. */
function reached(sets: readonly Uint32Array[], minCount: number, rows: number): Uint32Array {
  if (minCount <= 0) return fullBits(rows);
  if (minCount > sets.length) return emptyBits(rows);
  const planes = Array.from({ length: 32 - Math.clz32(sets.length) }, () => emptyBits(rows));
  for (const set of sets) addOne(planes, set);
  const result = emptyBits(rows);
  for (let word = 0; word < result.length; word++) {
    let greater = 0;
    let equal = 0xffff_ffff;
    for (let bit = planes.length - 1; bit >= 0; bit--) {
      const plane = (planes[bit] as Uint32Array)[word] as number;
      if ((minCount >>> bit) & 1) equal &= plane;
      else {
        greater |= equal & plane;
        equal &= ~plane;
      }
    }
    result[word] = greater | equal;
  }
  clearBehind(result, rows);
  return result;
}

function addOne(planes: readonly Uint32Array[], set: Uint32Array): void {
  for (let word = 0; word < set.length; word++) {
    let carry = set[word] as number;
    for (let bit = 0; carry !== 0 && bit < planes.length; bit++) {
      const plane = planes[bit] as Uint32Array;
      const before = plane[word] as number;
      plane[word] = before ^ carry;
      carry &= before;
    }
  }
}

// ------------------------------------------------------------------ keys of the cache

/** Text that is equal for equal filters over equal indexes; undefined when it would be too long to keep. */
function filterKey(filter: Filter, source: FilterSource): string | undefined {
  return keyOf('filter', filter, source);
}

function conditionKey(condition: Condition, source: FilterSource): string | undefined {
  return keyOf('condition', condition, source);
}

function keyOf(kind: string, value: Filter | Condition, source: FilterSource): string | undefined {
  const text = cacheText(value, CACHED_KEY_LENGTH_MAX);
  if (text === null) return undefined;
  const keys = new Set<string>();
  if ('kind' in value) collectKeys(value, '', keys);
  else collectFilterKeys(value, '', keys);
  let key = `${kind} ${text}`;
  for (const field of keys) key += ` ${field}=${schemaKey(field, source)}`;
  return key;
}

/** Adds the full keys of all fields that a condition looks at. within: the array whose elements it is about, empty for the payload itself. */
function collectKeys(condition: Condition, within: string, keys: Set<string>): void {
  if (condition.kind === 'filter') collectFilterKeys(condition.filter, within, keys);
  if (!('key' in condition)) return;
  const key = within === '' ? condition.key : nestedPath(within, condition.key);
  keys.add(key);
  if (condition.kind === 'nested') collectFilterKeys(condition.filter, key, keys);
}

function collectFilterKeys({ minShould, must, mustNot, should }: Filter, within: string, keys: Set<string>): void {
  for (const condition of must) collectKeys(condition, within, keys);
  for (const condition of should) collectKeys(condition, within, keys);
  for (const condition of mustNot) collectKeys(condition, within, keys);
  if (minShould !== null) for (const condition of minShould.conditions) collectKeys(condition, within, keys);
}

/** Answers may change with an index: see `lookup.ts`. */
function schemaKey(key: string, source: FilterSource): string {
  const schema = source.fieldSchema?.(key);
  if (schema === undefined) return source.fieldIndex(key) === undefined ? '' : 'index';
  const known = schemaTexts.get(schema);
  if (known !== undefined) return known;
  const text = JSON.stringify(schema.type === 'text' ? schema : [schema.type, schema.params?.lookup, schema.params?.range]);
  schemaTexts.set(schema, text);
  return text;
}

const schemaTexts = new WeakMap<FieldSchema, string>();

/** Random filters, each with what it means: a test of one point. What depends on an index asks the model for it. */

import type { RandomNumbers } from '../../../ops/random.js';
import { areaOf } from './areas.js';
import { chance, IDS, idOf, many, one, TAGS, textOf, timeOf, UUIDS, WORDS } from './points.js';
import type { Id, Json, Model, ModelPoint, Payload } from './state.js';

type Passes = (id: Id, point: ModelPoint) => boolean;

/** A condition or filter as requests write it, and what it means. */
export interface Filter {
  readonly wire: object;
  readonly passes: Passes;
}

export const ALL: Filter = { wire: {}, passes: () => true };

/** A filter: clauses of conditions, some of them filters again. */
export function filterOf(model: Model, random: RandomNumbers, depth = 2): Filter {
  const conditions = () => many(1 + random.integer(2), () => conditionOf(model, random, depth));
  return clauses(random, conditions);
}

function clauses<Subject extends unknown[]>(
  random: RandomNumbers,
  conditions: () => { wire: object; passes: (...subject: Subject) => boolean }[],
): { wire: object; passes: (...subject: Subject) => boolean } {
  const wire: Record<string, unknown> = {};
  const tests: ((...subject: Subject) => boolean)[] = [];
  const kinds = ['must', 'should', 'must_not', 'min_should'].filter(() => chance(random, 3));
  for (const kind of kinds.length === 0 ? ['must'] : kinds) {
    const list = conditions();
    const wires = list.map((condition) => condition.wire);
    const count = (...subject: Subject) => list.filter((condition) => condition.passes(...subject)).length;
    const least = 1 + random.integer(list.length);
    if (kind === 'must') tests.push((...subject) => count(...subject) === list.length);
    if (kind === 'should') tests.push((...subject) => count(...subject) > 0);
    if (kind === 'must_not') tests.push((...subject) => count(...subject) === 0);
    if (kind === 'min_should') tests.push((...subject) => count(...subject) >= least);
    wire[kind] =
      kind === 'min_should' ? { conditions: wires, min_count: least } : wires.length === 1 && chance(random, 2) ? wires[0] : wires;
  }
  return { wire, passes: (...subject) => tests.every((test) => test(...subject)) };
}

function conditionOf(model: Model, random: RandomNumbers, depth: number): Filter {
  switch (random.integer(depth > 0 ? 9 : 7)) {
    case 0: {
      const ids = many(random.integer(60), () => idOf(random.integer(IDS)));
      return { wire: { has_id: ids }, passes: (id) => ids.includes(id) };
    }
    case 1: {
      const name = one(random, [...model.spaces.keys()]);
      return { wire: { has_vector: name }, passes: (_, { vectors }) => vectors[name] !== undefined };
    }
    case 7:
      return filterOf(model, random, depth - 1);
    case 8:
      return nestedOf(model, random);
    default: {
      const { wire, passes } = fieldOf(model, random);
      return { wire, passes: (_, { payload }) => passes(payload) };
    }
  }
}

// ------------------------------------------------------------------ payloads

interface Field {
  readonly wire: object;
  /** subject: a payload, or an element within a nested condition. */
  readonly passes: (subject: Json) => boolean;
}

/** Values at a path, arrays as they are. Steps: `a`, `a[]`, `a[0]`, joined by dots; quoted keys. */
export function valuesAt(subject: Json, path: string): Json[] {
  let found: Json[] = [subject];
  for (const [, quoted, plain, index] of path.matchAll(/"([^"]+)"|([^.[\]"]+)|\[(\d*)\]/g)) {
    const key = quoted ?? plain;
    found = found.flatMap((value) => {
      if (key === undefined) return Array.isArray(value) ? (index === '' ? value : value.slice(Number(index), Number(index) + 1)) : [];
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
      return isObject && Object.hasOwn(value, key) ? [value[key] as Json] : [];
    });
  }
  return found;
}

/** Values at a path, elements of arrays one by one. */
export function elementsAt(subject: Json, path: string): Json[] {
  return valuesAt(subject, path).flat(1) as Json[];
}

const isInteger = (value: Json): boolean => typeof value === 'number' && Number.isInteger(value);
const isText = (value: Json): value is string => typeof value === 'string';
const isUuid = (value: Json): value is string => isText(value) && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);

function fieldOf(model: Model, random: RandomNumbers): Field {
  const key = one(random, KEYS);
  switch (random.integer(12)) {
    case 0:
      return { wire: { is_empty: { key } }, passes: (subject) => isEmpty(subject, key) };
    case 1:
      // With an index the condition looks into arrays.
      return { wire: { is_null: { key } }, passes: (subject) => (model.indexes.has(key) ? holdsNull : isNull)(subject, key) };
    case 2: {
      const wanted = chance(random, 2);
      return { wire: { key, is_empty: wanted }, passes: (subject) => isEmpty(subject, key) === wanted };
    }
    case 3: {
      const wanted = chance(random, 2);
      return { wire: { key, is_null: wanted }, passes: (subject) => holdsNull(subject, key) === wanted };
    }
    case 4: {
      const { wire, holds } = rangeOf(random, () => random.integer(4));
      const count = (value: Json) => (value === null ? 0 : Array.isArray(value) ? value.length : 1);
      return { wire: { key, values_count: wire }, passes: (subject) => valuesAt(subject, key).some((value) => holds(count(value))) };
    }
    default:
      return typedOf(model, random, key);
  }
}

const KEYS = [
  'm',
  'n',
  'f',
  'tag',
  'ok',
  'at',
  'when',
  'u',
  'text',
  'items[].price',
  'items[].name',
  'deep.a',
  'deep.b.c',
  'deep."d.e"',
  '__proto__',
  '__proto__.key',
  'constructor',
  'items[0].name',
  'missing',
];

function isEmpty(subject: Json, key: string): boolean {
  return valuesAt(subject, key).every((value) => value === null || (Array.isArray(value) && value.length === 0));
}

function isNull(subject: Json, key: string): boolean {
  return valuesAt(subject, key).some((value) => value === null);
}

function holdsNull(subject: Json, key: string): boolean {
  return valuesAt(subject, key).some((value) => value === null || (Array.isArray(value) && value.includes(null)));
}

function typedOf(model: Model, random: RandomNumbers, key: string): Field {
  const index = () => model.indexes.get(key);
  const some = (wire: object, test: (value: Json) => boolean): Field => ({
    wire: { key, ...wire },
    passes: (subject) => elementsAt(subject, key).some(test),
  });
  if (key === 'at') {
    const { wire, holds } = areaOf(random);
    return some(wire, (value) => isPlace(value) && holds(value));
  }
  if (key === 'when') {
    const { wire, holds } = rangeOf(
      random,
      () => timeOf(random),
      (text) => Date.parse(text as string),
    );
    return some({ range: wire }, (value) => isText(value) && !Number.isNaN(Date.parse(value)) && holds(Date.parse(value)));
  }
  if (key === 'text') return wordsOf(model, random);
  if (key === 'f' || (chance(random, 2) && ['m', 'n', 'items[].price', 'deep.a'].includes(key))) {
    const { wire, holds } = rangeOf(random, () => random.integer(700) / 8 - 15);
    const { gte: _, ...withoutGte } = wire;
    const bounds = boundsTest(withoutGte, Number);
    return some({ range: wire }, (value) => {
      if (typeof value !== 'number') return false;
      if (index()?.type !== 'integer') return holds(value);
      // An integer index has integers only and ignores `gte` beside `gt`.
      return isInteger(value) && (wire.gt === undefined ? holds(value) : bounds(value));
    });
  }
  const values = valuesFor(random, key);
  const equal = (value: Json, other: Json) =>
    index()?.type === 'uuid' && values.every(isUuid) && isUuid(value)
      ? value.toLowerCase() === String(other).toLowerCase()
      : value === other;
  if (chance(random, 3)) return some({ match: { value: values[0] } }, (value) => equalOne(value, values[0] as Json));
  const listed = (value: Json) => values.some((other) => equal(value, other));
  if (values.some((value) => typeof value === 'boolean')) return some({ match: { value: values[0] } }, (value) => value === values[0]);
  if (chance(random, 2)) return some({ match: { any: values } }, listed);
  return some({ match: { except: values } }, (value) => value !== null && !listed(value) && counts(value));

  function equalOne(value: Json, other: Json): boolean {
    if (index()?.type === 'uuid' && isUuid(other) && isUuid(value)) return value.toLowerCase() === other.toLowerCase();
    return value === other;
  }

  /** Values of another type than the index's are no exceptions, when all values are of its type. */
  function counts(value: Json): boolean {
    const ofType: Record<string, (value: Json) => boolean> = { keyword: isText, integer: isInteger, uuid: isUuid };
    const isOfType = ofType[index()?.type ?? ''];
    return isOfType === undefined || !values.every(isOfType) || isOfType(value);
  }
}

function isPlace(value: Json): value is { lon: number; lat: number } {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && typeof value.lon === 'number' && typeof value.lat === 'number'
  );
}

/** At least one value to match: all texts, all integers or a boolean. */
function valuesFor(random: RandomNumbers, key: string): Json[] {
  const count = 1 + random.integer(3);
  if (key === 'ok' || chance(random, 20)) return [chance(random, 2)];
  if (key === 'u') return many(count, () => (chance(random, 4) ? one(random, UUIDS).toUpperCase() : one(random, UUIDS)));
  const isNumber = ['m', 'n', 'items[].price', 'deep.a', 'deep."d.e"', 'constructor', '__proto__.key'].includes(key);
  if (isNumber !== chance(random, 15)) return many(count, () => random.integer(key === 'm' || key === 'n' ? 60 : 10));
  return many(count, () => one(random, TAGS));
}

// ------------------------------------------------------------------ ranges, words, nested filters

type Bounds = { gt?: Json; gte?: Json; lt?: Json; lte?: Json };

/** A range with at least one bound. number: what a bound of the request stands for. */
function rangeOf(
  random: RandomNumbers,
  bound: () => Json,
  number: (bound: Json) => number = Number,
): { wire: Bounds; holds: (value: number) => boolean } {
  const wire: Bounds = {};
  while (Object.keys(wire).length === 0) {
    if (chance(random, 2)) wire[one(random, ['gt', 'gte'] as const)] = bound();
    if (chance(random, 2)) wire[one(random, ['lt', 'lte'] as const)] = bound();
  }
  if (chance(random, 10)) wire.gte = bound();
  return { wire, holds: boundsTest(wire, number) };
}

function boundsTest({ gt, gte, lt, lte }: Bounds, number: (bound: Json) => number): (value: number) => boolean {
  return (value) =>
    (gt === undefined || value > number(gt)) &&
    (gte === undefined || value >= number(gte)) &&
    (lt === undefined || value < number(lt)) &&
    (lte === undefined || value <= number(lte));
}

function wordsOf(model: Model, random: RandomNumbers): Field {
  const kind = one(random, ['text', 'text_any', 'phrase'] as const);
  const asked = chance(random, 2) ? one(random, WORDS) : chance(random, 4) ? 'lazy' : textOf(random).split(' ').slice(0, 2).join(' ');
  const tokens = (text: string) => text.toLowerCase().split(' ');
  const wanted = tokens(asked);
  const passes = (subject: Json): boolean => {
    const texts = elementsAt(subject, 'text').filter(isText);
    const index = model.indexes.get('text');
    if (index?.type !== 'text') {
      // Without an index: parts of the text, to the letter.
      return texts.some((text) => (kind === 'text_any' ? asked.split(' ').some((word) => text.includes(word)) : text.includes(asked)));
    }
    const all = texts.flatMap(tokens);
    if (kind === 'text') return wanted.every((word) => all.includes(word));
    if (kind === 'text_any') return wanted.some((word) => all.includes(word));
    return index.phrase_matching === true && texts.some((text) => ` ${tokens(text).join(' ')} `.includes(` ${wanted.join(' ')} `));
  };
  return { wire: { key: 'text', match: { [kind]: asked } }, passes };
}

/** Some element of `items` passes by itself. */
function nestedOf(model: Model, random: RandomNumbers): Filter {
  const conditions = () =>
    many(1 + random.integer(2), (): { wire: object; passes: (element: Json, payload: Payload) => boolean } => {
      const key = one(random, ['name', 'price', 'notes']);
      switch (random.integer(4)) {
        case 0:
          return {
            wire: { is_empty: { key } },
            // With an index on the full path the whole row must have no value there.
            passes: (element, payload) =>
              isEmpty(element, key) && (!model.indexes.has(`items[].${key}`) || isEmpty(payload, `items[].${key}`)),
          };
        case 1:
          return { wire: { is_null: { key } }, passes: (element) => isNull(element, key) };
        case 2: {
          const value = random.integer(10);
          return {
            wire: { key: 'price', range: { gte: value } },
            passes: (element) => elementsAt(element, 'price').some((one) => typeof one === 'number' && one >= value),
          };
        }
        default: {
          const value = one(random, TAGS);
          return { wire: { key: 'name', match: { value } }, passes: (element) => elementsAt(element, 'name').includes(value) };
        }
      }
    });
  const { wire, passes } = clauses(random, conditions);
  return {
    wire: { nested: { key: one(random, ['items', 'items[]']), filter: wire } },
    passes: (_, { payload }) =>
      elementsAt(payload, 'items').some(
        (element) => typeof element === 'object' && element !== null && !Array.isArray(element) && passes(element, payload),
      ),
  };
}

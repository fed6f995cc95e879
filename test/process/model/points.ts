/** Random points: vectors of every kind, payloads with values of every type, some of the wrong one, some missing. */

import type { RandomNumbers } from '../../../ops/random.js';
import { FLEETING_SPACES, type Id, type Json, type Payload, type Space, type Value } from './state.js';

export const IDS = 700;
export const TAGS = ['red', 'green', 'blue', 'Grün', ''] as const;
export const WORDS = ['quick', 'brown', 'fox', 'Lazy', 'dog', 'over'] as const;
export const UUIDS = Array.from({ length: 6 }, (_, i) => `0badc0de-${i}000-4000-8000-00000000abcd`);

export function one<T>(random: RandomNumbers, list: readonly T[]): T {
  return list[random.integer(list.length)] as T;
}

export function chance(random: RandomNumbers, outOf: number): boolean {
  return random.integer(outOf) === 0;
}

export function many<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}

/** Integer ids, and some UUIDs. */
export function idOf(number: number): Id {
  return number % 5 === 0 ? `${String(number).padStart(8, '0')}-0000-4000-8000-000000000000` : number;
}

/** A value that fits the space. */
export function vectorValue(random: RandomNumbers, space: Space): Value {
  if (space.kind === 'sparse') {
    const indices = [
      ...new Set(many(random.integer(7), () => (chance(random, 9) ? 4_000_000_000 + random.integer(5) : random.integer(30)))),
    ];
    return { indices, values: indices.map(() => eighths(random)) };
  }
  if (space.kind === 'multi') return many(1 + random.integer(4), () => dense(random, space));
  return dense(random, space);
}

function dense(random: RandomNumbers, { datatype, size }: Space): number[] {
  // Products of short float16 vectors are rounded to float16: few bits leave nothing to round.
  if (datatype === 'float16') return many(size, () => (random.integer(33) - 16) / 4);
  if (datatype === 'float32') return many(size, () => eighths(random));
  // What a byte cannot hold is cut to what it can.
  return many(size, () => (chance(random, 40) ? -3.5 : random.integer(260)));
}

function eighths(random: RandomNumbers): number {
  return (random.integer(257) - 128) / 8;
}

/** Vectors of a point: some of the names, seldom none. */
export function vectorsOf(random: RandomNumbers, spaces: ReadonlyMap<string, Space>): Record<string, Value> {
  if (chance(random, 40)) return {};
  const names = [...spaces].filter(() => !chance(random, 6));
  return Object.fromEntries(names.map(([name, space]) => [name, vectorValue(random, space)]));
}

/** A space for the vector that comes and goes. */
export function fleetingSpace(random: RandomNumbers): Space {
  return one(random, FLEETING_SPACES);
}

export function payloadOf(random: RandomNumbers): Payload {
  const entries: [string, Json][] = [['m', random.integer(100)]];
  const maybe = (key: string, make: () => Json): void => {
    if (random.integer(4) > 0) entries.push([key, make()]);
  };
  maybe('n', () => listed(random, () => (chance(random, 12) ? odd(random) : random.integer(60) - 10)));
  maybe('f', () => listed(random, () => random.integer(800) / 8 - 20));
  maybe('tag', () => listed(random, () => (chance(random, 12) ? odd(random) : one(random, TAGS))));
  maybe('ok', () => listed(random, () => chance(random, 2)));
  maybe('at', () => listed(random, () => placeOf(random)));
  maybe('x', () => single(random, () => random.integer(800) / 8 - 20));
  maybe('spot', () => single(random, () => placeOf(random)));
  maybe('when', () => listed(random, () => timeOf(random)));
  maybe('u', () => listed(random, () => (chance(random, 12) ? odd(random) : one(random, UUIDS))));
  maybe('text', () => listed(random, () => textOf(random)));
  maybe('items', () => many(random.integer(4), () => itemOf(random)));
  maybe('deep', () => ({ a: random.integer(5), b: { c: one(random, TAGS) }, 'd.e': random.integer(3) }));
  if (chance(random, 4)) entries.push(['__proto__', chance(random, 3) ? { key: 1 } : one(random, TAGS)]);
  if (chance(random, 6)) entries.push(['constructor', random.integer(3)]);
  return Object.fromEntries(entries);
}

/** One value, a list of some, an empty list, null. */
function listed(random: RandomNumbers, make: () => Json): Json {
  switch (random.integer(12)) {
    case 0:
      return null;
    case 1:
      return [];
    case 2:
      return [make(), null];
    case 3:
    case 4:
      return many(1 + random.integer(3), make);
    default:
      return make();
  }
}

/** One value, also in a list of its own, or an empty list: what a formula takes. */
function single(random: RandomNumbers, make: () => Json): Json {
  return random.integer(12) === 0 ? [] : chance(random, 4) ? [make()] : make();
}

/** Of a type that the key has seldom. */
function odd(random: RandomNumbers): Json {
  return one<Json>(random, [2.5, true, 'red', 7, { red: 1 }]);
}

function itemOf(random: RandomNumbers): Json {
  const item: Payload = {};
  if (random.integer(3) > 0) item.name = one(random, TAGS);
  if (random.integer(3) > 0) item.price = random.integer(10);
  if (chance(random, 4)) item.notes = chance(random, 2) ? null : [one(random, TAGS), null];
  return chance(random, 15) ? 'no object' : item;
}

export function placeOf(random: RandomNumbers): { lon: number; lat: number } {
  return { lon: random.integer(3600) / 10 - 180, lat: random.integer(1800) / 10 - 90 };
}

/** Days and hours of three years, in some of the spellings that are read. */
export function timeOf(random: RandomNumbers): string {
  const two = (number: number) => String(number).padStart(2, '0');
  const day = `${2022 + random.integer(3)}-${two(1 + random.integer(12))}-${two(1 + random.integer(28))}`;
  const hour = two(random.integer(24));
  return one(random, [day, `${day}T${hour}:30:00Z`, `${day}T${hour}:30:00.25+02:00`]);
}

export function textOf(random: RandomNumbers): string {
  return many(1 + random.integer(5), () => one(random, WORDS)).join(' ');
}

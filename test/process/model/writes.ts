/** Random writes: each changes the model and says which operation does the same to a node. */

import type { RandomNumbers } from '../../../ops/random.js';
import { ALL, type Filter, filterOf } from './filters.js';
import { chance, IDS, idOf, many, one, payloadOf, TAGS, vectorsOf, vectorValue } from './points.js';
import { type Id, type Json, type Model, type ModelPoint, type Payload, type Space, stored, type Value } from './state.js';

/** One operation of `points/batch`. */
export interface Write {
  readonly name: string;
  readonly body: object;
}

/** Requests of single operations. */
export const ROUTES: Readonly<Record<string, readonly [method: string, path: string]>> = {
  upsert: ['PUT', 'points'],
  delete: ['POST', 'points/delete'],
  set_payload: ['POST', 'points/payload'],
  overwrite_payload: ['PUT', 'points/payload'],
  delete_payload: ['POST', 'points/payload/delete'],
  clear_payload: ['POST', 'points/payload/clear'],
  update_vectors: ['PUT', 'points/vectors'],
  delete_vectors: ['POST', 'points/vectors/delete'],
};

/** Changes the model; the write that does the same to a node. */
export function change(model: Model, random: RandomNumbers): Write {
  if (model.points.size === 0) return upsert(model, random);
  const kind = random.integer(14);
  if (kind < 5) return upsert(model, random);
  if (kind === 5) return updateVectors(model, random);
  const { wire, ids } = selection(model, random);
  const edit = (edited: (point: ModelPoint) => ModelPoint): void => {
    for (const id of ids) model.points.set(id, edited(model.points.get(id) as ModelPoint));
  };
  const editPayload = (edited: (payload: Payload) => Json): void =>
    edit(({ vectors, payload }) => ({ vectors, payload: edited(payload) as Payload }));
  switch (kind) {
    case 6:
      for (const id of ids) model.points.delete(id);
      return { name: 'delete', body: wire };
    case 7:
    case 8: {
      const payload = patchOf(random);
      const key = chance(random, 2) ? one(random, ['deep', 'deep.b', 'items[]', 'items[0]', 'new.deeper', '__proto__']) : null;
      editPayload((old) => (key === null ? merged(old, payload) : setAt(old, stepsOf(key), payload)));
      return { name: 'set_payload', body: { payload, ...(key === null ? {} : { key }), ...wire } };
    }
    case 9: {
      const payload = payloadOf(random);
      editPayload(() => payload);
      return { name: 'overwrite_payload', body: { payload, ...wire } };
    }
    case 10: {
      const keys = many(1 + random.integer(2), () =>
        one(random, ['tag', 'n', 'deep.a', 'items[].price', 'items[0]', '__proto__', 'deep."d.e"']),
      );
      editPayload((old) => keys.reduce<Json>((payload, key) => deleteAt(payload, stepsOf(key)), old));
      return { name: 'delete_payload', body: { keys, ...wire } };
    }
    case 11:
      if (!chance(random, 4)) return upsert(model, random);
      editPayload(() => ({}));
      return { name: 'clear_payload', body: wire };
    default: {
      const names = [...model.spaces.keys()].filter(() => chance(random, 3));
      if (names.length === 0) names.push('e');
      edit(({ vectors, payload }) => ({ payload, vectors: without(vectors, names) }));
      return { name: 'delete_vectors', body: { vector: names, ...wire } };
    }
  }
}

/** Points to change: by their ids, or those among some that pass a filter. */
function selection(model: Model, random: RandomNumbers): { wire: object; ids: readonly Id[] } {
  const all = [...model.points.keys()];
  const ids = [...new Set(many(Math.min(all.length, 12), () => one(random, all)))];
  if (chance(random, 2)) return { wire: { points: ids }, ids };
  const { wire, passes } = filterOf(model, random);
  return { wire: { filter: { must: [wire, { has_id: ids }] } }, ids: ids.filter((id) => passes(id, model.points.get(id) as ModelPoint)) };
}

// ------------------------------------------------------------------ points

function upsert(model: Model, random: RandomNumbers): Write {
  const mode = chance(random, 4) ? one(random, ['upsert', 'insert_only', 'update_only'] as const) : undefined;
  const filter = chance(random, 6) ? filterOf(model, random) : undefined;
  const options = { ...(mode && { update_mode: mode }), ...(filter && { update_filter: filter.wire }) };
  const ids = many(1 + random.integer(90), () => idOf(random.integer(IDS)));
  const asColumns = chance(random, 5);
  const names = [...model.spaces].filter(() => !chance(random, 5));
  const points = ids.map((id) => ({
    id,
    vector: asColumns
      ? Object.fromEntries(names.map(([name, space]) => [name, vectorValue(random, space)]))
      : vectorsOf(random, model.spaces),
    payload: chance(random, 20) ? null : payloadOf(random),
  }));
  // Of an id that is given twice the last one counts.
  for (const { id, vector, payload } of new Map(points.map((point) => [point.id, point])).values()) {
    if (isWritten(model, id, mode, filter)) model.points.set(id, { vectors: storedVectors(model.spaces, vector), payload: payload ?? {} });
  }
  if (!asColumns) return { name: 'upsert', body: { points, ...options } };
  const vectors = Object.fromEntries(names.map(([name]) => [name, points.map(({ vector }) => vector[name])]));
  return { name: 'upsert', body: { batch: { ids, vectors, payloads: points.map(({ payload }) => payload) }, ...options } };
}

function isWritten(model: Model, id: Id, mode: string | undefined, filter: Filter = ALL): boolean {
  const old = model.points.get(id);
  if (old === undefined) return mode !== 'update_only';
  return mode !== 'insert_only' && filter.passes(id, old);
}

function updateVectors(model: Model, random: RandomNumbers): Write {
  const all = [...model.points.keys()];
  const ids = [...new Set(many(1 + random.integer(20), () => one(random, all)))];
  const filter = chance(random, 5) ? filterOf(model, random) : undefined;
  const points = ids.map((id) => {
    const vector = vectorsOf(random, model.spaces);
    return { id, vector: Object.keys(vector).length === 0 ? { e: vectorValue(random, model.space('e')) } : vector };
  });
  for (const { id, vector } of points) {
    const { vectors, payload } = model.points.get(id) as ModelPoint;
    if (filter !== undefined && !filter.passes(id, { vectors, payload })) continue;
    model.points.set(id, { payload, vectors: { ...vectors, ...storedVectors(model.spaces, vector) } });
  }
  return { name: 'update_vectors', body: { points, ...(filter && { update_filter: filter.wire }) } };
}

function storedVectors(spaces: ReadonlyMap<string, Space>, vectors: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(vectors).map(([name, value]) => [name, stored(spaces.get(name) as Space, value)]));
}

export function without<T>(members: { readonly [key: string]: T }, keys: readonly string[]): { [key: string]: T } {
  return Object.fromEntries(Object.entries(members).filter(([key]) => !keys.includes(key)));
}

// ------------------------------------------------------------------ payloads

type Step = string | number;
const EACH = '[]';

function patchOf(random: RandomNumbers): Payload {
  const [first, second] = [Object.entries(payloadOf(random)), Object.entries(payloadOf(random))];
  const entries = [...first.slice(0, 3), ...second.slice(-1), ['name', one(random, TAGS)] as [string, Json]];
  return Object.fromEntries(chance(random, 3) ? [...entries, [one(random, ['tag', 'n', '__proto__']), null] as [string, Json]] : entries);
}

/** The steps of a path: keys, `[]` for each element, numbers for one. */
function stepsOf(path: string): Step[] {
  return [...path.matchAll(/"([^"]+)"|([^.[\]"]+)|\[(\d*)\]/g)].map(
    ([, quoted, plain, index]) => quoted ?? plain ?? (index === '' ? EACH : Number(index)),
  );
}

/** Nulls of a patch take keys away. */
function merged(old: Payload, patch: Payload): Payload {
  const entries = new Map(Object.entries(old));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) entries.delete(key);
    else entries.set(key, value);
  }
  return Object.fromEntries(entries);
}

function isObject(value: Json | undefined): value is Payload {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function setAt(value: Json | undefined, [step, ...rest]: Step[], patch: Payload): Json {
  if (step === undefined) return merged(isObject(value) ? value : {}, patch);
  if (typeof step === 'string' && step !== EACH) {
    const entries = new Map(isObject(value) ? Object.entries(value) : []);
    entries.set(step, setAt(entries.get(step), rest, patch));
    return Object.fromEntries(entries);
  }
  if (!Array.isArray(value)) return [];
  return value.map((element, at) => (step === EACH || step === at ? setAt(element, rest, patch) : element));
}

function deleteAt(value: Json, [step, ...rest]: Step[]): Json {
  if (typeof step === 'string' && step !== EACH) {
    if (!isObject(value) || !Object.hasOwn(value, step)) return value;
    if (rest.length === 0) return without(value, [step]);
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, key === step ? deleteAt(one, rest) : one]));
  }
  if (!Array.isArray(value)) return value;
  if (rest.length === 0) return value.filter((_, at) => step !== EACH && step !== at);
  return value.map((element, at) => (step === EACH || step === at ? deleteAt(element, rest) : element));
}

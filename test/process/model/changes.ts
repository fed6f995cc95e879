/** Random changes of the collection itself: indexes, vectors, settings. Each is a request and what it does to the model. */

import type { RandomNumbers } from '../../../ops/random.js';
import { chance, fleetingSpace, one } from './points.js';
import { FLEETING, type Index, Model, wireSpace } from './state.js';
import { change, ROUTES, without } from './writes.js';

/** One request. */
export interface Step {
  readonly method: string;
  /** Behind `/collections/<name>`. */
  readonly path: string;
  readonly body?: object;
  /** What the request does. */
  readonly apply: (model: Model) => void;
}

/** Types of indexes by key: the type of its values, and now and then another one. */
const FITTING: readonly (readonly [key: string, indexes: readonly Index[]])[] = [
  ['m', [{ type: 'integer' }, { type: 'float' }]],
  ['n', [{ type: 'integer' }, { type: 'integer' }, { type: 'float' }, { type: 'keyword' }]],
  ['f', [{ type: 'float' }]],
  ['tag', [{ type: 'keyword' }, { type: 'keyword' }, { type: 'integer' }]],
  ['ok', [{ type: 'bool' }]],
  ['at', [{ type: 'geo' }]],
  ['when', [{ type: 'datetime' }, { type: 'keyword' }]],
  ['u', [{ type: 'uuid' }, { type: 'keyword' }]],
  ['text', [{ type: 'text' }, { type: 'text', phrase_matching: true }]],
  ['items[].price', [{ type: 'integer' }]],
  ['items[].name', [{ type: 'keyword' }]],
  ['deep.a', [{ type: 'integer' }]],
  ['__proto__', [{ type: 'keyword' }]],
];

/** Makes an index, or takes it away. */
export function indexChange(model: Model, random: RandomNumbers): Step[] {
  const [key, indexes] = one(random, FITTING);
  if (model.indexes.has(key)) {
    return [{ method: 'DELETE', path: `index/${encodeURIComponent(key)}?wait=true`, apply: ({ indexes: all }) => void all.delete(key) }];
  }
  const index = one(random, indexes);
  const field_schema = chance(random, 2) && Object.keys(index).length === 1 ? index.type : { ...index, on_disk: chance(random, 3) };
  const body = { field_name: key, field_schema };
  return [{ method: 'PUT', path: 'index?wait=true', body, apply: ({ indexes: all }) => void all.set(key, index) }];
}

/** Makes the vector that comes and goes, or takes it away; half of the time another one of its name follows at once. */
export function vectorChange(model: Model, random: RandomNumbers): Step[] {
  const path = `vectors/${FLEETING}?wait=true`;
  const space = fleetingSpace(random);
  const making: Step = {
    method: 'PUT',
    path,
    body: { [space.kind === 'sparse' ? 'sparse' : 'dense']: wireSpace(space) },
    apply: ({ spaces }) => void spaces.set(FLEETING, space),
  };
  if (!model.spaces.has(FLEETING)) return [making];
  const taking: Step = {
    method: 'DELETE',
    path,
    apply: ({ spaces, points }) => {
      spaces.delete(FLEETING);
      for (const [id, { vectors, payload }] of points) points.set(id, { payload, vectors: without(vectors, [FLEETING]) });
    },
  };
  return chance(random, 2) ? [taking] : [taking, making];
}

/** Settings that make the optimizer build segments anew. */
export function settingsChange(random: RandomNumbers): Step[] {
  const body = one<object>(random, [
    { hnsw_config: { m: 8 + random.integer(8), ef_construct: 50 + random.integer(50) } },
    { quantization_config: { scalar: { type: 'int8', always_ram: true } } },
    { quantization_config: { product: { compression: 'x4' } } },
    { quantization_config: { binary: {} } },
    { quantization_config: 'Disabled' },
    { optimizers_config: { indexing_threshold: 1 + random.integer(5), default_segment_number: 1 + random.integer(3) } },
    { optimizers_config: { deleted_threshold: 0.05 + random.unit() / 5, max_segment_size: one(random, [20, 100, 1000]) } },
    { vectors: { e: { on_disk: chance(random, 2), quantization_config: { turbo: { bits: 'bits4' } } } } },
    { vectors: { c: { hnsw_config: { m: 6 } } }, sparse_vectors: { s: { index: { on_disk: chance(random, 2) } } } },
  ]);
  return [{ method: 'PATCH', path: '', body, apply: () => {} }];
}

/** A write of points, as a step. */
export function pointsChange(model: Model, random: RandomNumbers): Step[] {
  const after = new Model(model);
  const { name, body } = change(after, random);
  const [method, path] = ROUTES[name] as readonly [string, string];
  const apply = ({ points }: Model): void => {
    points.clear();
    for (const [id, point] of after.points) points.set(id, point);
  };
  return [{ method, path: `${path}?wait=true`, body, apply }];
}

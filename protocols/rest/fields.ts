/**
 * Reads the fields of a decoded JSON object by name and type. A wrong type throws `malformedBody`, a value out of its
 * range `invalidValue`; null counts as absent, unknown fields are ignored, as the API has it.
 */

import { TroupeError } from '../errors.js';
import type { JsonValue } from '../model/payload.js';

export type JsonObject = { [key: string]: JsonValue };

export interface IntegerRange {
  /** Inclusive; 0 when left out. */
  readonly min?: number;
  /** Inclusive; unbounded when left out. */
  readonly max?: number;
}

/** Fields of one object. `path` names the object in messages: `hnsw_config`, '' for the body itself. */
export class Fields {
  private constructor(
    private readonly object: JsonObject,
    private readonly path: string,
  ) {}

  /** The fields of `value`, which must be an object. */
  static of(value: JsonValue | undefined, path: string): Fields {
    if (!isObject(value)) throw wrongType(path, value, 'an object');
    return new Fields(value, path);
  }

  /** Names of the fields, in the order of the body. */
  names(): string[] {
    return Object.keys(this.object);
  }

  /** Path of a field as messages name it. */
  pathOf(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }

  /** The raw value; undefined when absent or null. Inherited names (`constructor`) are absent. */
  value(name: string): JsonValue | undefined {
    const value = Object.hasOwn(this.object, name) ? this.object[name] : undefined;
    return value === null ? undefined : value;
  }

  /** An unsigned integer within `range`. */
  integer(name: string, range: IntegerRange = {}): number | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    const number = typeof value === 'bigint' ? Number(value) : value;
    if (typeof number !== 'number' || !Number.isInteger(number) || number < 0)
      throw wrongType(this.pathOf(name), value, 'an unsigned integer');
    return this.within(name, number, range.min ?? 0, range.max ?? Number.POSITIVE_INFINITY);
  }

  /** A number in min..max, both inclusive. */
  number(name: string, min: number, max: number): number | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    const number = typeof value === 'bigint' ? Number(value) : value;
    if (typeof number !== 'number') throw wrongType(this.pathOf(name), value, 'a number');
    return this.within(name, number, min, max, decimal);
  }

  boolean(name: string): boolean | undefined {
    const value = this.value(name);
    if (value === undefined || typeof value === 'boolean') return value;
    throw wrongType(this.pathOf(name), value, 'a boolean');
  }

  /** One of the given words. */
  word<Word extends string>(name: string, words: readonly Word[]): Word | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (typeof value === 'string' && (words as readonly string[]).includes(value)) return value as Word;
    throw wrongType(this.pathOf(name), value, `one of ${words.map((word) => `\`${word}\``).join(', ')}`);
  }

  /** The fields of a nested object. */
  nested(name: string): Fields | undefined {
    const value = this.value(name);
    return value === undefined ? undefined : Fields.of(value, this.pathOf(name));
  }

  private within(name: string, value: number, min: number, max: number, shown: (value: number) => string = String): number {
    if (value >= min && value <= max) return value;
    const bounds = max === Number.POSITIVE_INFINITY ? `${shown(min)} or larger` : `from ${shown(min)} to ${shown(max)}`;
    throw new TroupeError('invalidValue', `[${this.pathOf(name)}: value ${shown(value)} invalid, must be ${bounds}]`);
  }
}

/** A number that need not be whole, shown as one. */
function decimal(value: number): string {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** With these the API's messages about values begin; clients find nothing of the kind in their bodies. */
const WORDS_OF_THE_API = /^(?:internal|search_request|facet_request)(?:\.|$)/;

/** The path as it is in the client's body. */
export function bodyPath(path: string): string {
  return path.replace(WORDS_OF_THE_API, '');
}

/** The error for a value that is not of the wanted type. */
export function wrongType(path: string, value: JsonValue | undefined, wanted: string): TroupeError {
  const own = bodyPath(path);
  const where = own === '' ? 'request body' : `\`${own}\``;
  return new TroupeError('malformedBody', `${where}: invalid type: ${describe(value)}, expected ${wanted}`);
}

function describe(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a sequence';
  switch (typeof value) {
    case 'object':
      return 'a map';
    case 'string':
      return `string ${JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)}`;
    case 'boolean':
      return `boolean \`${value}\``;
    default:
      return `number \`${value}\``;
  }
}

/** The fields that are given. */
export function defined<Shape extends object>(
  fields: { [Key in keyof Shape]: Shape[Key] | undefined },
): {
  [Key in keyof Shape]?: Shape[Key];
} {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as { [Key in keyof Shape]?: Shape[Key] };
}

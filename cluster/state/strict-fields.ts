/**
 * Reads the fields of a JSON object that a node wrote. A field that is missing, unknown or of a wrong type comes from damage or from a
 * later release, and stops the reader with its path. `protocols/rest/fields.ts` reads what users wrote.
 */

import { TroupeError } from '../../protocols/errors.js';
import { parseStored, stringifyJson } from '../../protocols/json.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { isObject } from '../../protocols/rest/fields.js';

/**
 * Reads the JSON object in `bytes`, whose field `version` has to be `version`. what: its name in errors. Errors: `storage`, naming the field
 * that cannot be read.
 */
export function readObject<Value>(bytes: Uint8Array, what: string, version: number, read: (fields: StrictFields) => Value): Value {
  let value: JsonValue;
  try {
    value = parseStored(bytes);
  } catch (cause) {
    throw new TroupeError('storage', `${what} is damaged: it is not JSON`, { cause });
  }
  return readAll(new StrictFields(value, what), (fields) => {
    const found = fields.value('version');
    if (found === version) return read(fields);
    const how = `has version ${stringifyJson(found)}, this release reads ${version}: run the release that wrote it, or a later one`;
    throw new TroupeError('storage', `${what} ${how}`);
  });
}

export class StrictFields {
  readonly #object: { readonly [key: string]: JsonValue };
  readonly #read: string[] = [];

  constructor(
    value: JsonValue,
    private readonly path: string,
  ) {
    if (!isObject(value)) throw unreadable(path, 'is no object');
    this.#object = value;
  }

  /** Ends the object. Errors: `storage` if it has a field that was not read. */
  end(): void {
    // A linear search is fastest: objects have few fields, and a state has many objects.
    for (const name of Object.keys(this.#object))
      if (!this.#read.includes(name)) throw unreadable(`${this.path}.${name}`, 'is unknown to this release');
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#object, name);
  }

  value(name: string): JsonValue {
    if (!this.has(name)) throw this.wrong(name, 'is missing');
    this.#read.push(name);
    return this.#object[name] as JsonValue;
  }

  /** An object. read: reads its fields; it has to read all of them. */
  nested<Value>(name: string, read: (fields: StrictFields) => Value): Value {
    return readAll(new StrictFields(this.value(name), `${this.path}.${name}`), read);
  }

  /** A list of objects. */
  list<Value>(name: string, read: (fields: StrictFields) => Value): Value[] {
    const items = this.value(name);
    if (!Array.isArray(items)) throw this.wrong(name, 'is no list');
    return items.map((item, at) => readAll(new StrictFields(item, `${this.path}.${name}[${at}]`), read));
  }

  /** The error of a field. */
  wrong(name: string, how: string): TroupeError {
    return unreadable(`${this.path}.${name}`, how);
  }
}

/** The result of `read`, which has to read all fields. */
function readAll<Value>(fields: StrictFields, read: (fields: StrictFields) => Value): Value {
  const value = read(fields);
  fields.end();
  return value;
}

function unreadable(path: string, how: string): TroupeError {
  const detail = `${path} ${how}: it is damaged or was written by a later release, which this node has to run then`;
  return new TroupeError('storage', detail);
}

/**
 * Reads the fields of a JSON object that a node wrote. A field that is missing, unknown or of a wrong type comes from damage or from a
 * later release, and stops the reader with its path. `protocols/rest/fields.ts` reads what users wrote.
 */

import { TroupeError } from '../../protocols/errors.js';
import { parseJson, stringifyJson } from '../../protocols/json.js';
import { type PeerId, REPLICA_STATES, type ReplicaState, type ShardKey } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { JsonValue } from '../../protocols/model/payload.js';

/** Parses the JSON object in `bytes`. what: its name in errors. Errors: `storage`. */
export function parseObject(bytes: Uint8Array, what: string): StrictFields {
  let value: JsonValue;
  try {
    value = parseJson(bytes);
  } catch (cause) {
    throw new TroupeError('storage', `${what} is damaged: it is no JSON`, { cause });
  }
  return new StrictFields(value, what);
}

export class StrictFields {
  readonly #object: { readonly [key: string]: JsonValue };
  readonly #read: string[] = [];

  constructor(
    value: JsonValue,
    private readonly path: string,
  ) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw unreadable(path, 'is no object');
    this.#object = value;
  }

  /** Ends the object. Errors: `storage` if it has a field that was not read. */
  end(): void {
    // A linear search is fastest: objects have few fields, and a state has many objects.
    for (const name of Object.keys(this.#object))
      if (!this.#read.includes(name)) throw unreadable(`${this.path}.${name}`, 'is unknown to this release');
  }

  /** The field `version`. Errors: `storage` if it is higher than `known`, the highest that this release can read. */
  version(known: number): number {
    const version = this.value('version');
    if (typeof version === 'number' && Number.isSafeInteger(version) && version >= 1 && version <= known) return version;
    const detail = `${this.path} has version ${stringifyJson(version)}, this release reads ${known}: run the release that wrote it, or a later one`;
    throw new TroupeError('storage', detail);
  }

  value(name: string): JsonValue {
    if (!Object.hasOwn(this.#object, name)) throw this.wrong(name, 'is missing');
    this.#read.push(name);
    return this.#object[name] as JsonValue;
  }

  /** A non-negative safe integer. */
  integer(name: string): number {
    const value = this.value(name);
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw this.wrong(name, 'is no unsigned integer');
    return value;
  }

  integerOrNull(name: string): number | null {
    return this.value(name) === null ? null : this.integer(name);
  }

  string(name: string): string {
    const value = this.value(name);
    if (typeof value !== 'string') throw this.wrong(name, 'is no string');
    return value;
  }

  stringOrNull(name: string): string | null {
    return this.value(name) === null ? null : this.string(name);
  }

  boolean(name: string): boolean {
    const value = this.value(name);
    if (typeof value !== 'boolean') throw this.wrong(name, 'is neither true nor false');
    return value;
  }

  word<Word extends string>(name: string, words: readonly Word[]): Word {
    const value = this.value(name);
    if (typeof value !== 'string' || !(words as readonly string[]).includes(value)) throw this.wrong(name, 'is unknown to this release');
    return value as Word;
  }

  replicaState(name: string): ReplicaState {
    return this.word(name, REPLICA_STATES);
  }

  shardKey(name: string): ShardKey {
    const value = this.value(name);
    if (typeof value === 'string' || typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value))) return value;
    throw this.wrong(name, 'is no shard key');
  }

  /** A collection's configuration; only the fields that the cluster uses are checked. */
  config(name: string): CollectionConfig {
    const value = this.value(name);
    if (!isObject(value)) throw this.wrong(name, 'is no object');
    if (!isObject(value.params)) throw this.wrong(`${name}.params`, 'is no object');
    return value as unknown as CollectionConfig;
  }

  /** An object. read: reads its fields; it has to read all of them. */
  nested<Value>(name: string, read: (fields: StrictFields) => Value): Value {
    return readAll(new StrictFields(this.value(name), `${this.path}.${name}`), read);
  }

  /** A list of objects. */
  list<Value>(name: string, read: (fields: StrictFields) => Value): Value[] {
    return this.items(name).map((item, at) => readAll(new StrictFields(item, `${this.path}.${name}[${at}]`), read));
  }

  /** Lists of peers, one per shard. */
  placement(name: string): PeerId[][] {
    return this.items(name).map((peers) => {
      if (!Array.isArray(peers) || !peers.every((peer): peer is number => typeof peer === 'number' && Number.isSafeInteger(peer)))
        throw this.wrong(name, 'is no placement');
      return peers;
    });
  }

  private items(name: string): JsonValue[] {
    const value = this.value(name);
    if (!Array.isArray(value)) throw this.wrong(name, 'is no list');
    return value;
  }

  private wrong(name: string, how: string): TroupeError {
    return unreadable(`${this.path}.${name}`, how);
  }
}

function isObject(value: JsonValue | undefined): value is { readonly [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The result of `read`, which has to read all fields. */
export function readAll<Value>(fields: StrictFields, read: (fields: StrictFields) => Value): Value {
  const value = read(fields);
  fields.end();
  return value;
}

function unreadable(path: string, how: string): TroupeError {
  const detail = `${path} ${how}: it is damaged or was written by a later release, which this node has to run then`;
  return new TroupeError('storage', detail);
}

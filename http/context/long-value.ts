/**
 * Values of answers that grow with the number of collections. Their lists and objects are made member by member while they are printed, so
 * each member tells how things are at that moment.
 */

import type { LongWork } from '../../actors/runtime/long-works.js';
import { setMember, stringifyJson } from '../../protocols/json.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import type { TextBytes } from './text-bytes.js';

/** A list whose items are made while it is printed; each may be long itself. */
export class LongList {
  constructor(readonly items: Iterable<unknown>) {}
}

/** An object whose members are made while it is printed; each may be long itself. Those that are undefined are left out. */
export class LongObject {
  constructor(readonly members: Iterable<readonly [name: string, value: unknown]>) {}

  /** The value is that of each member, long ones among them. */
  static of(members: Readonly<Record<string, unknown>>): LongObject {
    return new LongObject(Object.entries(members));
  }
}

/** Each item as `make` makes it when its turn comes. */
export function longList<Item>(items: Iterable<Item>, make: (item: Item) => unknown): LongList {
  return new LongList(made(items, make));
}

/** Writes the JSON of a value, as `stringifyJson` has it. */
export function* writeJson(out: TextBytes, value: unknown): LongWork {
  if (value instanceof LongList) {
    let separator = '[';
    for (const item of value.items) {
      out.write(separator);
      yield* writeJson(out, item);
      separator = ',';
      yield;
    }
    out.write(separator === '[' ? '[]' : ']');
  } else if (value instanceof LongObject) {
    let separator = '{';
    for (const [name, member] of value.members) {
      if (member === undefined) continue;
      out.write(`${separator}${JSON.stringify(name)}:`);
      yield* writeJson(out, member);
      separator = ',';
      yield;
    }
    out.write(separator === '{' ? '{}' : '}');
  } else out.write(stringifyJson(value));
}

/** The value as plain lists and objects that are the caller's own. */
export function* plainCopy(value: unknown): LongWork<unknown> {
  if (value instanceof LongList) {
    const items: unknown[] = [];
    for (const item of value.items) {
      items.push(yield* plainCopy(item));
      yield;
    }
    return items;
  }
  if (value instanceof LongObject) {
    const object: { [name: string]: JsonValue } = {};
    for (const [name, member] of value.members) {
      if (member === undefined) continue;
      setMember(object, name, (yield* plainCopy(member)) as JsonValue);
      yield;
    }
    return object;
  }
  return structuredClone(value);
}

function* made<Item>(items: Iterable<Item>, make: (item: Item) => unknown): Generator<unknown> {
  for (const item of items) yield make(item);
}

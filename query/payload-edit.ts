/**
 * Edits of payloads along paths. Pure: the given payload is never changed, unchanged parts are shared with the result.
 * Keys are data: `__proto__` is set and deleted like any other. Source: scenarios points-payload and points-retrieve.
 */

import { copyFloatMarks, markHolder, mayHoldFloats, moveFloatMark } from '../protocols/float-marks.js';
import { setMember } from '../protocols/json.js';
import type { PayloadSelector } from '../protocols/model/filter.js';
import { type JsonPath, pathOf } from '../protocols/model/json-path.js';
import type { JsonValue, Payload } from '../protocols/model/payload.js';

/** `payload` with the keys of `patch`; a null in the patch takes its key away. (Set payload.) */
export function mergePayload(payload: Payload, patch: Payload): Payload {
  let merged = copyOf(payload);
  for (const key of Object.keys(patch)) {
    const value = patch[key] as JsonValue;
    if (value === null) merged = without(merged, key);
    else {
      setMember(merged, key, value);
      moveFloatMark(patch, key, merged, key, value);
    }
  }
  return merged;
}

/**
 * `payload` with `patch` merged into the object at `path`. (Set payload with `key`.)
 * What is missing on the way is made: objects for keys, empty arrays for `[]` and `[n]`; what is of another type is
 * replaced. `[n]` behind the array's end changes nothing.
 */
export function setAtPath(payload: Payload, path: string, patch: Payload): Payload {
  return setAt(payload, pathOf(path), 0, patch) as Payload;
}

/** `payload` without what stands at `path`; `a[]` leaves an empty array, `a[0]` takes out one element. (Delete payload keys.) */
export function deleteAtPath(payload: Payload, path: string): Payload {
  return deleteAt(payload, pathOf(path), 0) as Payload;
}

/** The part of a payload that an answer carries; undefined for none. */
export function payloadSelect(payload: Payload, selector: PayloadSelector): Payload | undefined {
  switch (selector.kind) {
    case 'all':
      return payload;
    case 'none':
      return undefined;
    case 'include':
      return (include(payload, selector.keys.map(pathOf)) ?? {}) as Payload;
    case 'exclude':
      return selector.keys.reduce(deleteAtPath, payload);
  }
}

function setAt(value: JsonValue | undefined, path: JsonPath, depth: number, patch: Payload): JsonValue {
  const step = path[depth];
  if (step === undefined) return mergePayload(isObject(value) ? value : {}, patch);
  if (step.kind === 'key') {
    const object = isObject(value) ? copyOf(value) : {};
    setMember(object, step.key, setAt(own(object, step.key), path, depth + 1, patch));
    return marked(object, object[step.key]);
  }
  if (!Array.isArray(value)) return [];
  return mapped(value, (element, index) =>
    step.kind === 'each' || index === step.index ? setAt(element, path, depth + 1, patch) : element,
  );
}

function deleteAt(value: JsonValue, path: JsonPath, depth: number): JsonValue {
  const step = path[depth];
  const last = depth === path.length - 1;
  if (step === undefined) return value;
  if (step.kind === 'key') {
    if (!isObject(value)) return value;
    const child = own(value, step.key);
    if (child === undefined) return value;
    if (last) return without(value, step.key);
    const changed = deleteAt(child, path, depth + 1);
    if (changed === child) return value;
    const copy = copyOf(value);
    setMember(copy, step.key, changed);
    return marked(copy, changed);
  }
  if (!Array.isArray(value) || value.length === 0) return value;
  if (step.kind === 'each') return last ? [] : mapped(value, (element) => deleteAt(element, path, depth + 1));
  if (step.index >= value.length) return value;
  return last
    ? mapped(value, (element, index) => (index === step.index ? undefined : element))
    : mapped(value, (element, index) => (index === step.index ? deleteAt(element, path, depth + 1) : element));
}

/**
 * What lies on one of the paths. Objects and arrays on the way to a path stay, with only what belongs to it; array
 * elements are kept by `[]` alone, so `items[0].k` leaves an empty array, as the reference does.
 * `paths`: remaining steps of each path that leads here.
 */
function include(value: JsonValue, paths: readonly JsonPath[]): JsonValue | undefined {
  if (paths.length === 0) return undefined;
  if (paths.some((path) => path.length === 0)) return value;
  if (Array.isArray(value)) {
    const inner = paths.filter((path) => path[0]?.kind === 'each').map((path) => path.slice(1));
    return mapped(value, (element) => include(element, inner));
  }
  if (!isObject(value)) return undefined;
  const kept: Payload = {};
  for (const key of Object.keys(value)) {
    const inner = paths.filter((path) => path[0]?.kind === 'key' && path[0].key === key).map((path) => path.slice(1));
    const part = include(value[key] as JsonValue, inner);
    if (part === undefined) continue;
    setMember(kept, key, part);
    moveFloatMark(value, key, kept, key, part);
  }
  return kept;
}

/** The list of what is made of each element; undefined leaves it out. Elements that stay as they are stay written as they were. */
function mapped(value: readonly JsonValue[], make: (element: JsonValue, index: number) => JsonValue | undefined): JsonValue[] {
  const made: JsonValue[] = [];
  value.forEach((element, index) => {
    const one = make(element, index);
    if (one === undefined) return;
    moveFloatMark(value, String(index), made, String(made.length), one);
    made.push(one);
  });
  return made;
}

/** The object, which has a new member. */
function marked(object: Payload, member: JsonValue | undefined): Payload {
  if (mayHoldFloats(member)) markHolder(object);
  return object;
}

function isObject(value: JsonValue | undefined): value is Payload {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function own(object: Payload, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** A shallow copy. Spreading makes own properties of all keys, `__proto__` too. */
function copyOf(object: Payload): Payload {
  const copy = { ...object };
  copyFloatMarks(object, copy);
  return copy;
}

function without(object: Payload, key: string): Payload {
  if (!Object.hasOwn(object, key)) return object;
  const copy = copyOf(object);
  delete copy[key];
  return copy;
}

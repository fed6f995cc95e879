/**
 * Which numbers of a JSON value were written as floats though they are integral (`3.0`). Such a number is the number 3 in the value, so that
 * whoever computes with it or compares it need not know; printers and encoders ask here. The notes belong to the object or array that
 * holds the number, by its key (of an array: the position as text), and go when that one goes.
 */

const floatKeys = new WeakMap<object, Set<string>>();
/** What has such a number in it, at any depth. */
const holders = new WeakSet<object>();
/** Whether this thread ever had one: as long as it had none, nothing need be looked up. */
let hadFloats = false;

/** The keys of an object or array whose numbers were written as floats. */
export function floatKeysOf(container: object): Set<string> | undefined {
  return hadFloats ? floatKeys.get(container) : undefined;
}

/** Whether a value may have such a number in it. It says yes of one that has lost its numbers since. */
export function mayHoldFloats(value: unknown): boolean {
  return hadFloats && typeof value === 'object' && value !== null && holders.has(value);
}

/** Notes that the number at a key was written as a float. */
export function markFloat(container: object, key: string): void {
  const keys = floatKeys.get(container);
  if (keys === undefined) floatKeys.set(container, new Set([key]));
  else keys.add(key);
  markHolder(container);
}

/** Notes that something within a container was written as a float. */
export function markHolder(container: object): void {
  hadFloats = true;
  holders.add(container);
}

/** What is noted of a member, for its new place: what was noted of that place goes. */
export function moveFloatMark(from: object, fromKey: string, to: object, toKey: string, value: unknown): void {
  if (!hadFloats) return;
  if (floatKeys.get(from)?.has(fromKey)) markFloat(to, toKey);
  else floatKeys.get(to)?.delete(toKey);
  if (mayHoldFloats(value)) markHolder(to);
}

/** What is noted of a container, for a copy that has the same members under the same keys. */
export function copyFloatMarks(from: object, to: object): void {
  if (!hadFloats) return;
  const keys = floatKeys.get(from);
  if (keys !== undefined) floatKeys.set(to, new Set(keys));
  if (holders.has(from)) holders.add(to);
}

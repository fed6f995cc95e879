/** Whether two values hold the same. Parts of values that never change are compared once, however often they come again. */

export class Sameness {
  readonly #known = new WeakMap<object, WeakSet<object>>();

  /** Maps are the same in any order of their entries, bytes by their content. */
  same(one: unknown, other: unknown): boolean {
    if (Object.is(one, other)) return true;
    if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
    if (this.#known.get(one)?.has(other) === true) return true;
    if (!this.#sameContent(one, other)) return false;
    const known = this.#known.get(one) ?? new WeakSet();
    this.#known.set(one, known.add(other));
    return true;
  }

  #sameContent(one: object, other: object): boolean {
    if (one instanceof Map) {
      if (!(other instanceof Map) || one.size !== other.size) return false;
      for (const [key, value] of one) if (!other.has(key) || !this.same(value, other.get(key))) return false;
      return true;
    }
    if (one instanceof Set) {
      if (!(other instanceof Set) || one.size !== other.size) return false;
      for (const value of one) if (!other.has(value)) return false;
      return true;
    }
    if (one instanceof Uint8Array) return other instanceof Uint8Array && Buffer.compare(one, other) === 0;
    if (Array.isArray(one) !== Array.isArray(other)) return false;
    const keys = Object.keys(one);
    if (keys.length !== Object.keys(other).length) return false;
    return keys.every((key) => key in other && this.same((one as Record<string, unknown>)[key], (other as Record<string, unknown>)[key]));
  }
}

/** The first place where two values differ, for messages. */
export function difference(one: unknown, other: unknown, path = ''): string {
  if (Object.is(one, other)) return '';
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return `${path}: ${show(one)} ≠ ${show(other)}`;
  if (one instanceof Uint8Array && other instanceof Uint8Array) return Buffer.compare(one, other) === 0 ? '' : `${path}: other bytes`;
  const parts = (value: object) => (value instanceof Map ? value : new Map(Object.entries(value)));
  const [ones, others] = [parts(one), parts(other)];
  for (const key of new Set([...ones.keys(), ...others.keys()])) {
    const found = difference(ones.get(key), others.get(key), `${path}/${String(key)}`);
    if (found !== '') return found;
  }
  return '';
}

function show(value: unknown): string {
  return value instanceof Map ? `Map(${[...value.keys()].join()})` : (JSON.stringify(value) ?? 'nothing')?.slice(0, 200);
}

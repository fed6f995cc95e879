/** Changes to a request that its sender should not have made. */

import type { RandomNumbers } from '../../../ops/random.js';

/** Text of JSON that no serializer writes: it stands in bodies as it is. */
export class RawJson {
  constructor(readonly text: string) {}
}

const DEEP = 6000;

/** Values of a wrong type, out of every range, or of a shape nobody expects. */
const HOSTILE: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  -1e308,
  new RawJson('1e999'),
  new RawJson('-0'),
  new RawJson('NaN'),
  new RawJson('18446744073709551615'),
  new RawJson('18446744073709551616'),
  new RawJson('9007199254740993'),
  new RawJson('1.0'),
  new RawJson('01'),
  new RawJson(`${'['.repeat(DEEP)}${']'.repeat(DEEP)}`),
  new RawJson(`${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`),
  new RawJson(`${'{"must":['.repeat(800)}{"key":"k","match":{"value":1}}${']}'.repeat(800)}`),
  new RawJson('{"__proto__":{"polluted":true}}'),
  new RawJson('{"constructor":{"prototype":{"polluted":true}}}'),
  new RawJson('{"a":1,"a":2}'),
  new RawJson('"\\ud800"'),
  new RawJson('"\\u0000"'),
  '',
  'a'.repeat(70_000),
  '__proto__',
  'constructor',
  '../../etc/passwd',
  '550e8400-e29b-41d4-a716-446655440000',
  '2024-99-99',
  'a[',
  'a.b[].c[0]."d.e"',
  [],
  {},
  [[]],
  [null],
  [[1], [1, 2]],
  { indices: [1, 1], values: [1, 2] },
  { indices: [5, 1], values: [1] },
  { must: { must: { must: [] } } },
  { text: 'x', model: 'y' },
  Array.from({ length: 3000 }, (_, i) => i),
];

/** A copy of `value` with one part exchanged, removed, added or doubled. */
export function mutated(value: unknown, random: RandomNumbers): unknown {
  if (value === null || typeof value !== 'object' || value instanceof RawJson) return hostile(random);
  const keys = Object.keys(value);
  if (keys.length === 0 || random.integer(8) === 0) return hostile(random);
  const key = keys[random.integer(keys.length)] as string;
  if (Array.isArray(value)) {
    const copy = [...value];
    const at = Number(key);
    switch (random.integer(5)) {
      case 0:
        copy.splice(at, 1);
        break;
      case 1:
        copy.splice(at, 0, copy[at]);
        break;
      case 2:
        copy[at] = hostile(random);
        break;
      default:
        copy[at] = mutated(copy[at], random);
    }
    return copy;
  }
  const entries = Object.entries(value);
  switch (random.integer(6)) {
    case 0:
      return Object.fromEntries(entries.filter(([name]) => name !== key));
    case 1:
      return Object.fromEntries(entries.map(([name, part]) => [name, name === key ? hostile(random) : part]));
    case 2:
      return Object.fromEntries([...entries, [strangeKey(random), hostile(random)]]);
    default:
      return Object.fromEntries(entries.map(([name, part]) => [name, name === key ? mutated(part, random) : part]));
  }
}

/** The bytes of a body: now and then cut, or with bytes that are no UTF-8. */
export function bytesOf(value: unknown, random: RandomNumbers): Buffer {
  const bytes = Buffer.from(textOf(value), 'utf8');
  switch (random.integer(40)) {
    case 0:
      return bytes.subarray(0, random.integer(bytes.length + 1));
    case 1:
    case 2:
      return scrambled(bytes, random);
    default:
      return bytes;
  }
}

/** A few bytes changed, inserted or left out. */
export function scrambled(bytes: Buffer, random: RandomNumbers): Buffer {
  let changed = Buffer.from(bytes);
  for (let i = 0; i <= random.integer(4); i++) {
    const at = random.integer(changed.length + 1);
    switch (random.integer(4)) {
      case 0:
        changed = Buffer.concat([changed.subarray(0, at), Buffer.of(random.integer(256)), changed.subarray(at)]);
        break;
      case 1:
        changed = Buffer.concat([changed.subarray(0, at), changed.subarray(at + 1 + random.integer(8))]);
        break;
      case 2:
        changed = changed.subarray(0, Math.max(at, changed.length - 40));
        break;
      default:
        if (at < changed.length) changed[at] = random.integer(256);
    }
  }
  return changed;
}

function hostile(random: RandomNumbers): unknown {
  return HOSTILE[random.integer(HOSTILE.length)];
}

function strangeKey(random: RandomNumbers): string {
  const keys = ['__proto__', 'constructor', 'shard_key', 'filter', 'unknown', '', 'using', 'prefetch', 'offset', 'vector', 'payload'];
  return keys[random.integer(keys.length)] as string;
}

function textOf(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(textOf).join(',')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([key, part]) => `${JSON.stringify(key)}:${textOf(part)}`)
      .join(',')}}`;
  return JSON.stringify(value) ?? 'null';
}

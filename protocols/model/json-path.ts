/**
 * Paths to values of a payload: `a.b`, `a[]` (every element), `a[0]` (one element), `"a.b"` (a key with dots).
 * A path has one canonical text, so that a filter finds the index that was created under another spelling.
 */

/** One step: into a key of an object, into every element of an array, or into one element. */
export type PathStep =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'each' }
  | { readonly kind: 'at'; readonly index: number };

/** First step is always a key. */
export type JsonPath = readonly PathStep[];

const EACH: PathStep = { kind: 'each' };
/** Keys that need quotes: empty ones and those with characters the grammar uses. */
const NEEDS_QUOTES = /^$|[.[\]"\\]/;
const INDEX_MAX = 0xffff_ffff;

const parsed = new Map<string, JsonPath>();
const PARSED_MAX = 10_000;
/** Longer texts are read anew each time: 10,000 of any length could take all memory. */
const KEPT_CHARACTERS_MAX = 256;

/** The steps of a path text, or undefined when it is none. */
export function parsePath(text: string): JsonPath | undefined {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const path = readPath(text);
  if (path === undefined) return undefined;
  if (text.length > KEPT_CHARACTERS_MAX) return path;
  if (parsed.size >= PARSED_MAX) parsed.clear();
  parsed.set(text, path);
  return path;
}

/** The steps of a path text that a door has accepted. */
export function pathOf(text: string): JsonPath {
  const path = parsePath(text);
  if (path === undefined) throw new Error(`not a payload path: ${text}`);
  return path;
}

/** Canonical text of a path: quotes only where they are needed. */
export function printPath(path: JsonPath): string {
  let text = '';
  for (const step of path) {
    if (step.kind === 'each') text += '[]';
    else if (step.kind === 'at') text += `[${step.index}]`;
    else text += (text === '' ? '' : '.') + printKey(step.key);
  }
  return text;
}

/** The path of `inner` within every element of the array at `outer`: `diet` and `food` make `diet[].food`. */
export function nestedPath(outer: string, inner: string): string {
  return `${arrayPath(outer)}.${inner}`;
}

/** A path to the elements of the array at `text`: `diet` and `diet[]` make `diet[]`. */
export function arrayPath(text: string): string {
  return text.endsWith('[]') ? text : `${text}[]`;
}

function printKey(key: string): string {
  return NEEDS_QUOTES.test(key) ? `"${key.replace(/[\\"]/g, '\\$&')}"` : key;
}

function readPath(text: string): JsonPath | undefined {
  const steps: PathStep[] = [];
  let at = 0;
  for (;;) {
    const key = text[at] === '"' ? readQuoted(text, at) : readPlain(text, at);
    if (key === undefined) return undefined;
    steps.push({ kind: 'key', key: key.key });
    at = key.end;
    while (text[at] === '[') {
      const close = text.indexOf(']', at);
      if (close < 0) return undefined;
      const step = readBrackets(text.slice(at + 1, close));
      if (step === undefined) return undefined;
      steps.push(step);
      at = close + 1;
    }
    if (at === text.length) return steps;
    if (text[at] !== '.') return undefined;
    at++;
  }
}

function readBrackets(inside: string): PathStep | undefined {
  if (inside === '') return EACH;
  if (!/^\d{1,10}$/.test(inside)) return undefined;
  const index = Number(inside);
  return index <= INDEX_MAX ? { kind: 'at', index } : undefined;
}

function readPlain(text: string, from: number): { key: string; end: number } | undefined {
  let end = from;
  while (end < text.length && !isGrammar(text.charCodeAt(end))) end++;
  return end === from ? undefined : { key: text.slice(from, end), end };
}

function isGrammar(code: number): boolean {
  // . [ ] " \
  return code === 0x2e || code === 0x5b || code === 0x5d || code === 0x22 || code === 0x5c;
}

function readQuoted(text: string, from: number): { key: string; end: number } | undefined {
  let key = '';
  for (let at = from + 1; at < text.length; at++) {
    const letter = text[at] as string;
    if (letter === '"') return { key, end: at + 1 };
    if (letter === '\\') {
      const next = text[at + 1];
      if (next !== '"' && next !== '\\') return undefined;
      key += next;
      at++;
    } else {
      key += letter;
    }
  }
  return undefined;
}

/** Kinds of settings: how a value given in YAML or as text is read, and what it must be. */

export interface Leaf<Value> {
  readonly kind: 'leaf';
  readonly fallback: Value;
  /** What a fitting value is, for messages: «an integer of 1 or more». */
  readonly expects: string;
  /** The typed value, or undefined when it does not fit. */
  readonly read: (value: unknown) => Value | undefined;
  /** The value that a text (an environment variable) stands for; `read` decides whether it fits. */
  readonly fromText: (text: string) => unknown;
  /** Takes nested keys that are not settings of their own. */
  readonly open?: boolean;
}

export interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

export function textLeaf(fallback: string): Leaf<string> {
  return leaf(fallback, 'a string', (value) => (typeof value === 'string' ? value : undefined), same);
}

export function integerLeaf(fallback: number, range: Bounds): Leaf<number> {
  return leaf(fallback, `an integer${rangeWords(range)}`, (value) => integerWithin(value, range), numberFromText);
}

/** A number from 0 to 1. */
export function fraction(fallback: number): Leaf<number> {
  const read = (value: unknown) => (typeof value === 'number' && value >= 0 && value <= 1 ? value : undefined);
  return leaf(fallback, 'a number from 0 to 1', read, numberFromText);
}

export function flagLeaf(fallback: boolean): Leaf<boolean> {
  return leaf(fallback, '`true` or `false`', (value) => (typeof value === 'boolean' ? value : undefined), flagFromText);
}

export function word<Word extends string>(words: readonly Word[], fallback: Word): Leaf<Word> {
  const read = (value: unknown) => words.find((candidate) => candidate === value);
  return leaf(fallback, `one of ${words.map((candidate) => `\`${candidate}\``).join(', ')}`, read, same);
}

/** A leaf that may also be null; an empty text or `null` stands for that. */
export function orNull<Value>(inner: Leaf<Value>, fallback: Value | null = null): Leaf<Value | null> {
  const read = (value: unknown) => (value === null ? null : inner.read(value));
  const fromText = (given: string) => (given === '' || given === 'null' ? null : inner.fromText(given));
  return leaf<Value | null>(fallback, `${inner.expects} or null`, read, fromText);
}

/** A list of strings; as a text, with commas between them. */
export function textListLeaf(): Leaf<readonly string[]> {
  const read = (value: unknown) =>
    Array.isArray(value) && value.every((item) => typeof item === 'string') ? (value as string[]) : undefined;
  const fromText = (given: string) =>
    given
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  return leaf<readonly string[]>([], 'a list of strings', read, fromText);
}

/** A list of groups whose keys are checked elsewhere; as a text, in JSON. */
export function groupListLeaf(): Leaf<readonly Readonly<Record<string, unknown>>[]> {
  const isGroup = (item: unknown) => typeof item === 'object' && item !== null && !Array.isArray(item);
  const read = (value: unknown) => (Array.isArray(value) && value.every(isGroup) ? (value as Record<string, unknown>[]) : undefined);
  return leaf<readonly Readonly<Record<string, unknown>>[]>(
    [],
    'a list of groups of settings (in a variable: as JSON)',
    read,
    jsonFromText,
  );
}

/** An object whose keys are checked elsewhere; null for none. */
export function openObject(): Leaf<Readonly<Record<string, unknown>> | null> {
  const read = (value: unknown) => {
    if (value === null) return null;
    return typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  };
  return { ...leaf<Readonly<Record<string, unknown>> | null>(null, 'a group of settings or null', read, scalarFromText), open: true };
}

/** The value a text stands for when no type is known: a boolean, a number, null or the text. */
export function scalarFromText(given: string): unknown {
  if (given === 'null' || given === '') return null;
  if (given === 'true' || given === 'false') return given === 'true';
  return numberFromText(given);
}

function leaf<Value>(
  fallback: Value,
  expects: string,
  read: (value: unknown) => Value | undefined,
  fromText: (text: string) => unknown,
): Leaf<Value> {
  return { kind: 'leaf', fallback, expects, read, fromText };
}

function integerWithin(value: unknown, range: Bounds): number | undefined {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) return undefined;
  return value >= (range.min ?? Number.NEGATIVE_INFINITY) && value <= (range.max ?? Number.POSITIVE_INFINITY) ? value : undefined;
}

function rangeWords(range: Bounds): string {
  if (range.min !== undefined && range.max !== undefined) return ` from ${range.min} to ${range.max}`;
  return range.min === undefined ? '' : ` of ${range.min} or more`;
}

function numberFromText(given: string): unknown {
  return /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(given) ? Number(given) : given;
}

function flagFromText(given: string): unknown {
  const lower = given.toLowerCase();
  if (lower === 'true' || lower === '1') return true;
  if (lower === 'false' || lower === '0') return false;
  return given;
}

/** The text itself where it is no JSON. */
function jsonFromText(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

function same(given: string): unknown {
  return given;
}

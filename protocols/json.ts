/**
 * JSON without loss: integers that a double cannot hold come as bigint and are printed digit by digit, and `3.0` is printed as `3.0`.
 *
 * Nearly every text takes `JSON.parse`. Cheap looks at the text say when it may hold something that would get lost
 * there (a long integer, an overflow, `3.0`, half of a surrogate pair, a key given twice); only then, or to say
 * where a text is broken, the exact parser below runs, which is some three times slower.
 *
 * What was written as `3.0` is the number 3 for all who read the value. That it was written so is noted beside the object or array that holds
 * it (`float-marks.ts`): whoever makes another one of its members takes the notes along.
 */

import { isUtf8 } from 'node:buffer';
import { TroupeError } from './errors.js';
import { floatKeysOf, markFloat, markHolder, mayHoldFloats } from './float-marks.js';
import type { JsonValue } from './model/payload.js';

/** Deepest nesting that is read or printed. */
const DEPTH_MAX = 512;
/** Longer texts are not looked through for integer fields written as floats (but for point ids) nor for keys given twice. */
const CLOSE_LOOK_CHARACTERS_MAX = 65_536;

const INT64_MIN = -0x8000_0000_0000_0000n;
const UINT64_MAX = 0xffff_ffff_ffff_ffffn;

/**
 * The value of a JSON text (UTF-8 bytes or a string).
 * Integers from -2^63 to 2^64 - 1 are exact (bigint beyond 2^53 - 1), larger ones are doubles.
 * Errors: `malformedBody`, with line and column, for broken JSON, numbers beyond a double, half a surrogate pair, and in texts that are looked at
 * closely for a key given twice in the outermost object and nesting deeper than 512.
 * characters: how long the text was before parts of it were taken out; how close it is looked at depends on that.
 */
export function parseJson(source: Uint8Array | string, characters?: number): JsonValue {
  const text = typeof source === 'string' ? source : decodeText(source);
  const closeLook = (characters ?? text.length) <= CLOSE_LOOK_CHARACTERS_MAX;
  let value: JsonValue;
  try {
    if (LONG_INTEGER.test(text) || hasIntegralFloat(text) || HALF_PAIR.test(text)) return parseExactly(text);
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    if (error instanceof TroupeError) throw error;
    return parseExactly(text);
  }
  if (!closeLook || typeof value !== 'object' || value === null) return value;
  const { deepest, members } = outline(text);
  const isOdd = deepest >= DEPTH_MAX || (isObject(value) && members !== Object.keys(value).length);
  return isOdd ? parseExactly(text) : value;
}

/**
 * The value of a text that this module has printed, or an earlier release of it: those took halves of surrogate pairs, which are read as they are.
 * Errors: `malformedBody`.
 */
export function parseStored(source: Uint8Array | string): JsonValue {
  const text = typeof source === 'string' ? source : decodeText(source);
  return LONG_INTEGER.test(text) || hasIntegralFloat(text) ? parseExactly(text, true) : parsePlainly(text);
}

/** The same for those who only look at values: quicker, as `3.0` may be just 3. */
export function parseValues(source: Uint8Array): JsonValue {
  const text = decodeText(source);
  return losesDigits(text) ? parseExactly(text, true) : parsePlainly(text);
}

function parsePlainly(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    // It fails as well, and says where.
    return parseExactly(text, true);
  }
}

/** Whether the number at `object[key]` was written with a fraction or exponent (`3.0`), which is no integer for the API. */
export function writtenAsFloat(object: object, key: string): boolean {
  return floatKeysOf(object)?.has(key) ?? false;
}

/**
 * JSON text of a value: bigint as digits; NaN and infinities as null. Errors: `malformedBody` when nested too deeply.
 * part: what of the value may hold numbers that were written as `3.0`, where that is not the value itself.
 */
export function stringifyJson(value: unknown, part: unknown = value): string {
  if (mayHoldFloats(part)) return printExactly(value, 0);
  try {
    return JSON.stringify(value) ?? 'null';
  } catch (error) {
    if (error instanceof RangeError) throw new TroupeError('malformedBody', 'recursion limit exceeded', { cause: error });
    return printExactly(value, 0);
  }
}

/**
 * Sets a key of a JSON object, `__proto__` like every other.
 * A plain assignment of that one would change the object's prototype instead.
 */
export function setMember(object: { [key: string]: JsonValue }, key: string, value: JsonValue): void {
  if (key === '__proto__') Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
}

function decodeText(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new TroupeError('malformedBody', 'invalid unicode code point at line 1 column 1');
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

function isObject(value: JsonValue): value is { [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// ------------------------------------------------------------------ cheap looks

/** An integer part of 16 digits or more. Regular expressions step over float text some five times faster than a loop does. */
const LONG_INTEGER = /(?:[[,:\s-]|^)\d{16}/;
/** What begins the escape of a half of a surrogate pair, or of a whole one. */
const HALF_PAIR = /\\u[dD][89a-fA-F]/;

/** Whether `JSON.parse` may lose digits of this text. May say yes too often, never no wrongly. */
function losesDigits(text: string): boolean {
  return LONG_INTEGER.test(text) || hasLargeExponent(text, 'e') || hasLargeExponent(text, 'E');
}

/** Whether a number has an exponent of three digits or more, which may overflow. */
function hasLargeExponent(text: string, letter: string): boolean {
  for (let at = text.indexOf(letter); at >= 0; at = text.indexOf(letter, at + 1)) {
    const digits = text.charCodeAt(at + 1) === 0x2b ? at + 2 : at + 1;
    if (isDigit(text.charCodeAt(digits)) && isDigit(text.charCodeAt(digits + 1)) && isDigit(text.charCodeAt(digits + 2))) return true;
  }
  return false;
}

/** Whether a number is written as a float though its value may be integral: `3.0`, `1.5e1`, `30e-1`, or overflows. May say yes too often, never no wrongly. */
function hasIntegralFloat(text: string): boolean {
  for (let at = text.indexOf('.0'); at >= 0; at = text.indexOf('.0', at + 2)) {
    let end = at + 2;
    while (text.charCodeAt(end) === 0x30) end++;
    if (!isDigit(text.charCodeAt(end)) && isNumberUpTo(text, at)) return true;
  }
  return hasIntegralExponent(text, 'e') || hasIntegralExponent(text, 'E');
}

/** Whether a number has an exponent that may make it integral: not a negative one behind another digit than 0. */
function hasIntegralExponent(text: string, letter: string): boolean {
  for (let at = text.indexOf(letter); at >= 0; at = text.indexOf(letter, at + 1)) {
    const before = text.charCodeAt(at - 1);
    if (!isDigit(before) || !isNumberUpTo(text, at)) continue;
    if (text.charCodeAt(at + 1) !== 0x2d || before === 0x30 || ZERO_EXPONENT.test(text.slice(at + 2, at + 6))) return true;
  }
  return false;
}

/** Whether digits that end before `end` stand where a value may: also within a string, but not in the middle of its words, as in a UUID. */
function isNumberUpTo(text: string, end: number): boolean {
  let at = lastNoDigit(text, end - 1);
  // A number has one point: to go on behind others would read a text of points again and again.
  if (at < end - 1 && text.charCodeAt(at) === 0x2e) at = lastNoDigit(text, at - 1);
  if (at === end - 1) return false;
  if (text.charCodeAt(at) === 0x2d) at--;
  return at < 0 || ',:[ \n\r\t'.includes(text[at] as string);
}

/** The last place up to `from` that has no digit; -1: there is none. */
function lastNoDigit(text: string, from: number): number {
  let at = from;
  while (isDigit(text.charCodeAt(at))) at--;
  return at;
}

const ZERO_EXPONENT = /^0+(?:$|[^0-9])/;

/**
 * Of a valid text: members of the outermost object, keys given twice counted twice, and how deep it is nested; the innermost array of numbers may
 * not be counted.
 */
function outline(text: string): { readonly members: number; readonly deepest: number } {
  let depth = 0;
  let deepest = 0;
  let members = 0;
  const length = text.length;
  for (let at = 0; at < length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22:
        at = stringEnd(text, at);
        break;
      case 0x5b: {
        const close = flatArrayEnd(text, at);
        if (close > 0) at = close;
        else if (++depth > deepest) deepest = depth;
        break;
      }
      case 0x7b:
        if (++depth > deepest) deepest = depth;
        break;
      case 0x5d:
      case 0x7d:
        depth--;
        break;
      case 0x3a:
        if (depth === 1) members++;
        break;
    }
  }
  return { members, deepest };
}

/** Place of the quote that closes the string opened at `at`. */
function stringEnd(text: string, at: number): number {
  let end = at;
  for (;;) {
    end = text.indexOf('"', end + 1);
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++;
    if (end < 0 || slashes % 2 === 0) return end < 0 ? text.length : end;
  }
}

/** Place of the bracket that closes the array opened at `at` when it holds numbers only, else 0: a vector is stepped over at once. */
function flatArrayEnd(text: string, at: number): number {
  const first = text.charCodeAt(at + 1);
  if (!isDigit(first) && first !== 0x2d) return 0;
  const close = text.indexOf(']', at + 1);
  const within = (letter: string): boolean => {
    const found = text.indexOf(letter, at + 1);
    return found >= 0 && found < close;
  };
  return within('"') || within('{') || within('[') ? 0 : close;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

// ------------------------------------------------------------------ exact parser

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const ESCAPES: Record<string, string> = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const HEX4 = /[0-9a-fA-F]{4}/y;

/** As `parseJson`, slowly and to the letter. takesHalves: halves of surrogate pairs are read, too. */
export function parseExactly(text: string, takesHalves = false): JsonValue {
  const cursor = { text, takesHalves, at: 0, floats: 0 };
  skipSpace(cursor);
  const value = readValue(cursor, 0);
  skipSpace(cursor);
  if (cursor.at < text.length) fail(cursor, 'trailing characters', cursor.at + 1);
  return value;
}

interface Cursor {
  readonly text: string;
  readonly takesHalves: boolean;
  at: number;
  /** Numbers written as floats so far whose values are integral. */
  floats: number;
}

/** `column`: characters from the text's start, counted from 1. */
function fail(cursor: Cursor, reason: string, column: number): never {
  const before = cursor.text.slice(0, column);
  const lines = before.split('\n');
  const last = lines[lines.length - 1] as string;
  throw new TroupeError('malformedBody', `${reason} at line ${lines.length} column ${last.length}`);
}

function failAtEnd(cursor: Cursor, what: string): never {
  if (cursor.text.length === 0) throw new TroupeError('malformedBody', 'the body is empty: expected JSON');
  return fail(cursor, `the JSON ends early, inside ${what},`, cursor.text.length);
}

function skipSpace(cursor: Cursor): void {
  const { text } = cursor;
  for (;;) {
    const code = text.charCodeAt(cursor.at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    cursor.at++;
  }
}

function readValue(cursor: Cursor, depth: number): JsonValue {
  if (depth > DEPTH_MAX) fail(cursor, 'recursion limit exceeded', cursor.at + 1);
  switch (cursor.text[cursor.at]) {
    case undefined:
      return failAtEnd(cursor, 'a value');
    case '{':
      return readObject(cursor, depth);
    case '[':
      return readArray(cursor, depth);
    case '"':
      return readString(cursor);
    case 't':
      return readWord(cursor, 'true', true);
    case 'f':
      return readWord(cursor, 'false', false);
    case 'n':
      return readWord(cursor, 'null', null);
    default:
      return readNumber(cursor);
  }
}

function readWord<T>(cursor: Cursor, word: string, value: T): T {
  if (!cursor.text.startsWith(word, cursor.at)) fail(cursor, 'expected ident', cursor.at + 2);
  cursor.at += word.length;
  return value;
}

function readNumber(cursor: Cursor): number | bigint {
  NUMBER.lastIndex = cursor.at;
  const match = NUMBER.exec(cursor.text);
  if (match === null) fail(cursor, 'expected value', cursor.at + 1);
  const digits = match[0];
  cursor.at += digits.length;
  if (isDigit(cursor.text.charCodeAt(cursor.at)) || cursor.text[cursor.at] === '.') fail(cursor, 'invalid number', cursor.at + 1);
  const double = Number(digits);
  if (!Number.isFinite(double)) fail(cursor, 'number out of range', cursor.at);
  if (match[1] !== undefined || match[2] !== undefined) {
    if (Number.isInteger(double)) cursor.floats++;
    return double;
  }
  if (Number.isSafeInteger(double) || digits.length > 20) return double;
  const integer = BigInt(digits);
  return integer >= INT64_MIN && integer <= UINT64_MAX ? integer : double;
}

/** Characters of a string that stand for themselves. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a string may not have
const PLAIN = /[^"\\\u0000-\u001f]*/y;

function readString(cursor: Cursor): string {
  const { text } = cursor;
  let value = '';
  for (let from = cursor.at + 1; ; ) {
    PLAIN.lastIndex = from;
    PLAIN.test(text);
    const at = PLAIN.lastIndex;
    const part = text.slice(from, at);
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      cursor.at = at + 1;
      return value === '' ? part : value + part;
    }
    if (Number.isNaN(code)) failAtEnd(cursor, 'a string');
    if (code < 0x20) fail(cursor, 'control character (\\u0000-\\u001F) found while parsing a string', at + 1);
    value += part;
    const letter = text[at + 1] ?? '';
    if (letter === 'u') {
      const unit = escapedUnit(cursor, at);
      from = at + 6;
      value += String.fromCharCode(unit);
      if (cursor.takesHalves || unit < 0xd800 || unit > 0xdfff) continue;
      const isPair = unit < 0xdc00 && text.startsWith('\\u', from);
      const second = isPair ? escapedUnit(cursor, from) : 0;
      if (second < 0xdc00 || second > 0xdfff) fail(cursor, 'lone surrogate: half of a pair stands for no character,', at + 6);
      value += String.fromCharCode(second);
      from += 6;
    } else {
      const plain = ESCAPES[letter];
      if (plain === undefined) fail(cursor, 'invalid escape', at + 2);
      value += plain;
      from = at + 2;
    }
  }
}

/** The code unit of an escape of four digits. */
function escapedUnit(cursor: Cursor, at: number): number {
  HEX4.lastIndex = at + 2;
  if (!HEX4.test(cursor.text)) fail(cursor, 'invalid escape', at + 2);
  return Number.parseInt(cursor.text.slice(at + 2, at + 6), 16);
}

function readArray(cursor: Cursor, depth: number): JsonValue[] {
  const values: JsonValue[] = [];
  cursor.at++;
  skipSpace(cursor);
  if (cursor.text[cursor.at] === ']') {
    cursor.at++;
    return values;
  }
  for (;;) {
    skipSpace(cursor);
    if (cursor.text[cursor.at] === ']') fail(cursor, 'trailing comma', cursor.at + 1);
    const { floats } = cursor;
    const value = readValue(cursor, depth + 1);
    if (cursor.floats > floats) {
      if (typeof value === 'number') markFloat(values, String(values.length));
      else markHolder(values);
    }
    values.push(value);
    skipSpace(cursor);
    const next = cursor.text[cursor.at];
    if (next === undefined) failAtEnd(cursor, 'a list');
    if (next !== ',' && next !== ']') fail(cursor, 'expected `,` or `]`', cursor.at + 1);
    cursor.at++;
    if (next === ']') return values;
  }
}

function readObject(cursor: Cursor, depth: number): { [key: string]: JsonValue } {
  const object: { [key: string]: JsonValue } = {};
  cursor.at++;
  skipSpace(cursor);
  if (cursor.text[cursor.at] === '}') {
    cursor.at++;
    return object;
  }
  for (;;) {
    skipSpace(cursor);
    const quote = cursor.text[cursor.at];
    if (quote === undefined) failAtEnd(cursor, 'an object');
    if (quote === '}') fail(cursor, 'trailing comma', cursor.at + 1);
    if (quote !== '"') fail(cursor, 'key must be a string', cursor.at + 1);
    const key = readString(cursor);
    if (depth === 0 && Object.hasOwn(object, key)) fail(cursor, `duplicate field \`${key}\``, cursor.at);
    skipSpace(cursor);
    if (cursor.at >= cursor.text.length) failAtEnd(cursor, 'an object');
    if (cursor.text[cursor.at] !== ':') fail(cursor, 'expected `:`', cursor.at + 1);
    cursor.at++;
    skipSpace(cursor);
    readMember(cursor, object, key, depth);
    skipSpace(cursor);
    const next = cursor.text[cursor.at];
    if (next === undefined) failAtEnd(cursor, 'an object');
    if (next !== ',' && next !== '}') fail(cursor, 'expected `,` or `}`', cursor.at + 1);
    cursor.at++;
    if (next === '}') return object;
  }
}

function readMember(cursor: Cursor, object: { [key: string]: JsonValue }, key: string, depth: number): void {
  const { floats } = cursor;
  const value = readValue(cursor, depth + 1);
  setMember(object, key, value);
  if (cursor.floats > floats) {
    if (typeof value === 'number') markFloat(object, key);
    else markHolder(object);
  } else floatKeysOf(object)?.delete(key);
}

// ------------------------------------------------------------------ exact printer

function printExactly(value: unknown, depth: number): string {
  if (depth > DEPTH_MAX) throw new TroupeError('malformedBody', 'recursion limit exceeded');
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const floats = floatKeysOf(value);
  if (Array.isArray(value)) {
    const items = value.map((item, at) =>
      floats?.has(String(at)) && Number.isInteger(item) ? floatText(item as number) : printExactly(item, depth + 1),
    );
    return `[${items.join(',')}]`;
  }
  const members: string[] = [];
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const text = floats?.has(key) && Number.isInteger(member) ? floatText(member as number) : printExactly(member, depth + 1);
    members.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${members.join(',')}}`;
}

/** An integral number as a float. Those from 1e21 on have an exponent anyway. */
function floatText(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value);
  return text.includes('e') ? text : `${text}.0`;
}

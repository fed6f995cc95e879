/**
 * Decodes formulas. Every expression is an object with one key, a number, a variable's name, or a condition.
 * Errors: `malformedBody`; `wrongInput` for names and numbers that are no variable, scale or midpoint.
 * Source: schema Expression of the API; scenarios query-formula and query-formula-decay.
 */

import { parseDatetime } from '../datetime.js';
import { TroupeError } from '../errors.js';
import { setMember } from '../json.js';
import type { Condition, GeoPoint } from '../model/filter.js';
import { parsePath, printPath } from '../model/json-path.js';
import type { JsonValue } from '../model/payload.js';
import type { Expression, Scoring } from '../model/query.js';
import { isObject, type JsonObject, wrongType } from './fields.js';
import { decodeFilter } from './filter.js';
import { isGiven } from './request-fields.js';

/** Evaluation goes down as deep as a formula does. */
const DEPTH_MAX = 128;
const SCORE = /^\$score(?:\[(\d{1,9})\])?$/;

/** The formula of `{formula, defaults}`. Names in `defaults` come out as expressions spell them: paths canonical, `$score[0]`. */
export function formulaOf({ formula, defaults }: JsonObject): Extract<Scoring, { kind: 'formula' }> {
  return { kind: 'formula', expression: expressionOf(formula, DEPTH_MAX, 'formula'), defaults: defaultsOf(defaults) };
}

function defaultsOf(value: JsonValue | undefined): { [variable: string]: JsonValue } {
  const defaults: { [variable: string]: JsonValue } = {};
  if (value === undefined) return defaults;
  if (!isObject(value)) throw wrongType('defaults', value, 'an object with a value per variable');
  for (const [name, one] of Object.entries(value)) {
    const variable = variableOf(name);
    if (variable.kind === 'score' && typeof one !== 'number') {
      throw new TroupeError('wrongInput', `the default of ${name} must be a number`);
    }
    setMember(defaults, variable.kind === 'score' ? `$score[${variable.prefetch}]` : variable.path, one);
  }
  return defaults;
}

/** depth: how many levels may follow. path: how messages name the value. */
function expressionOf(value: JsonValue | undefined, depth: number, path: string): Expression {
  if (depth === 0) throw new TroupeError('malformedBody', `the formula is nested deeper than ${DEPTH_MAX} levels: use fewer levels`);
  if (typeof value === 'number' || typeof value === 'bigint') return { kind: 'constant', value: Number(value) };
  if (typeof value === 'string') return variableOf(value);
  if (!isObject(value))
    throw wrongType(path, value, 'a number, a variable such as `$score` or a payload path, an operation, or a condition');
  return operationOf(value, depth - 1, path) ?? { kind: 'condition', condition: conditionOf(value, path) };
}

/** undefined: the object is no operation. */
function operationOf(object: JsonObject, depth: number, parent: string): Expression | undefined {
  const keys = Object.keys(object);
  const key = keys[0];
  if (keys.length !== 1 || key === undefined) return undefined;
  const value = object[key];
  const path = `${parent}.${key}`;
  switch (key) {
    case 'mult':
    case 'sum':
      if (!Array.isArray(value)) throw wrongType(path, value, 'a list of expressions');
      return { kind: key, terms: value.map((term, i) => expressionOf(term, depth, `${path}[${i}]`)) };
    case 'neg':
    case 'abs':
    case 'sqrt':
    case 'exp':
    case 'log10':
    case 'ln':
      return { kind: key, of: expressionOf(value, depth, path) };
    case 'div': {
      const { left, right, by_zero_default: byZero } = membersOf(value, path, '`left` and `right`');
      const byZeroDefault = optionalNumber(byZero, `${path}.by_zero_default`);
      return {
        kind: 'div',
        left: expressionOf(left, depth, `${path}.left`),
        right: expressionOf(right, depth, `${path}.right`),
        byZeroDefault,
      };
    }
    case 'pow': {
      const { base, exponent } = membersOf(value, path, '`base` and `exponent`');
      return {
        kind: 'pow',
        base: expressionOf(base, depth, `${path}.base`),
        exponent: expressionOf(exponent, depth, `${path}.exponent`),
      };
    }
    case 'geo_distance': {
      const { origin, to } = membersOf(value, path, '`origin` and `to`');
      return { kind: 'geoDistance', origin: geoPointOf(origin, `${path}.origin`), path: payloadPath(to, `${path}.to`) };
    }
    case 'datetime':
      return { kind: 'datetime', seconds: secondsOf(value, path) };
    case 'datetime_key':
      return { kind: 'datetimeKey', path: payloadPath(value, path) };
    case 'exp_decay':
      return decayOf('expDecay', value, depth, path);
    case 'gauss_decay':
      return decayOf('gaussDecay', value, depth, path);
    case 'lin_decay':
      return decayOf('linDecay', value, depth, path);
    default:
      return undefined;
  }
}

function decayOf(kind: 'expDecay' | 'gaussDecay' | 'linDecay', value: JsonValue | undefined, depth: number, path: string): Expression {
  const { x, target, scale: givenScale, midpoint: givenMidpoint } = membersOf(value, path, '`x`');
  const scale = optionalNumber(givenScale, `${path}.scale`);
  const midpoint = optionalNumber(givenMidpoint, `${path}.midpoint`);
  if (scale !== null && !(scale > 0))
    throw new TroupeError('wrongInput', `Validation failed: Decay scale should be non-zero positive, got ${scale}.`);
  // A line may reach 0 at the scale or stay level; the curves could do neither.
  const fits = midpoint === null || (kind === 'linDecay' ? midpoint >= 0 && midpoint <= 1 : midpoint > 0 && midpoint < 1);
  if (!fits) {
    const range = kind === 'linDecay' ? '[0.0, 1.0]' : '(0.0, 1.0)';
    throw new TroupeError('wrongInput', `Validation failed: Decay midpoint should be in the range ${range}, got ${midpoint}.`);
  }
  return {
    kind,
    x: expressionOf(x, depth, `${path}.x`),
    target: isGiven(target) ? expressionOf(target, depth, `${path}.target`) : null,
    scale,
    midpoint,
  };
}

function variableOf(name: string): Extract<Expression, { kind: 'score' | 'variable' }> {
  const score = SCORE.exec(name);
  if (score !== null) return { kind: 'score', prefetch: Number(score[1] ?? 0) };
  const steps = name.startsWith('$') ? undefined : parsePath(name);
  if (steps === undefined) {
    throw new TroupeError(
      'wrongInput',
      `Validation failed: ${name} is not a variable of a formula: expected \`$score\`, \`$score[n]\` or a payload path`,
    );
  }
  return { kind: 'variable', path: printPath(steps) };
}

function payloadPath(value: JsonValue | undefined, path: string): string {
  if (typeof value !== 'string') throw wrongType(path, value, 'a payload path (a string)');
  const variable = variableOf(value);
  if (variable.kind === 'score') throw new TroupeError('wrongInput', `${value} is not a payload path`);
  return variable.path;
}

/** A filter's condition, as one that stands alone. */
function conditionOf(object: JsonObject, path: string): Condition {
  const condition = decodeFilter({ must: [object] }, 'formula')?.must[0];
  if (condition === undefined) throw wrongType(path, object, 'an operation or a condition');
  return condition;
}

function geoPointOf(value: JsonValue | undefined, path: string): GeoPoint {
  const { lon, lat } = membersOf(value, path, '`lon` and `lat`');
  if (typeof lon !== 'number') throw wrongType(`${path}.lon`, lon, 'a number');
  if (typeof lat !== 'number') throw wrongType(`${path}.lat`, lat, 'a number');
  if (Math.abs(lon) > 180 || Math.abs(lat) > 90) {
    throw new TroupeError(
      'malformedBody',
      `invalid geo point: \`lon\` must be from -180 to 180 and \`lat\` from -90 to 90, got ${lon} and ${lat}`,
    );
  }
  return { lon, lat };
}

function secondsOf(value: JsonValue | undefined, path: string): number {
  if (typeof value !== 'string') throw wrongType(path, value, 'a date-time (a string)');
  const micros = parseDatetime(value);
  if (micros === undefined)
    throw new TroupeError('wrongInput', `Validation failed: failed to parse date-time ${value}: expected one like 2024-03-01T10:00:00Z`);
  return micros / 1e6;
}

/** members: the keys that are wanted, as messages list them. */
function membersOf(value: JsonValue | undefined, path: string, members: string): JsonObject {
  if (!isObject(value)) throw wrongType(path, value, `an object with ${members}`);
  return value;
}

function optionalNumber(value: JsonValue | undefined, path: string): number | null {
  if (!isGiven(value)) return null;
  if (typeof value !== 'number' && typeof value !== 'bigint') throw wrongType(path, value, 'a number');
  return Number(value);
}

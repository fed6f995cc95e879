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
import { isObject, type JsonObject } from './fields.js';
import { decodeFilter } from './filter.js';
import { noQuery } from './query-input.js';
import { isGiven } from './request-fields.js';

/** Evaluation goes down as deep as a formula does. */
const DEPTH_MAX = 128;
const SCORE = /^\$score(?:\[(\d{1,9})\])?$/;

/** The formula of `{formula, defaults}`. Names in `defaults` come out as expressions spell them: paths canonical, `$score[0]`. */
export function formulaOf({ formula, defaults }: JsonObject): Extract<Scoring, { kind: 'formula' }> {
  return { kind: 'formula', expression: expressionOf(formula, DEPTH_MAX), defaults: defaultsOf(defaults) };
}

function defaultsOf(value: JsonValue | undefined): { [variable: string]: JsonValue } {
  const defaults: { [variable: string]: JsonValue } = {};
  if (value === undefined) return defaults;
  if (!isObject(value)) throw noQuery();
  for (const [name, one] of Object.entries(value)) {
    const variable = variableOf(name);
    if (variable.kind === 'score' && typeof one !== 'number') {
      throw new TroupeError('wrongInput', `the default of ${name} must be a number`);
    }
    setMember(defaults, variable.kind === 'score' ? `$score[${variable.prefetch}]` : variable.path, one);
  }
  return defaults;
}

/** depth: how many levels may follow. */
function expressionOf(value: JsonValue | undefined, depth: number): Expression {
  if (depth === 0) throw new TroupeError('malformedBody', `a formula may be ${DEPTH_MAX} levels deep, this one is deeper`);
  if (typeof value === 'number' || typeof value === 'bigint') return { kind: 'constant', value: Number(value) };
  if (typeof value === 'string') return variableOf(value);
  if (!isObject(value)) throw noQuery();
  return operationOf(value, depth - 1) ?? { kind: 'condition', condition: conditionOf(value) };
}

/** undefined: the object is no operation. */
function operationOf(object: JsonObject, depth: number): Expression | undefined {
  const keys = Object.keys(object);
  const key = keys[0];
  if (keys.length !== 1 || key === undefined) return undefined;
  const value = object[key];
  switch (key) {
    case 'mult':
    case 'sum':
      if (!Array.isArray(value)) throw noQuery();
      return { kind: key, terms: value.map((term) => expressionOf(term, depth)) };
    case 'neg':
    case 'abs':
    case 'sqrt':
    case 'exp':
    case 'log10':
    case 'ln':
      return { kind: key, of: expressionOf(value, depth) };
    case 'div': {
      const { left, right, by_zero_default: byZero } = membersOf(value);
      const byZeroDefault = optionalNumber(byZero);
      return { kind: 'div', left: expressionOf(left, depth), right: expressionOf(right, depth), byZeroDefault };
    }
    case 'pow': {
      const { base, exponent } = membersOf(value);
      return { kind: 'pow', base: expressionOf(base, depth), exponent: expressionOf(exponent, depth) };
    }
    case 'geo_distance': {
      const { origin, to } = membersOf(value);
      return { kind: 'geoDistance', origin: geoPointOf(origin), path: payloadPath(to) };
    }
    case 'datetime':
      return { kind: 'datetime', seconds: secondsOf(value) };
    case 'datetime_key':
      return { kind: 'datetimeKey', path: payloadPath(value) };
    case 'exp_decay':
      return decayOf('expDecay', value, depth);
    case 'gauss_decay':
      return decayOf('gaussDecay', value, depth);
    case 'lin_decay':
      return decayOf('linDecay', value, depth);
    default:
      return undefined;
  }
}

function decayOf(kind: 'expDecay' | 'gaussDecay' | 'linDecay', value: JsonValue | undefined, depth: number): Expression {
  const { x, target, scale: givenScale, midpoint: givenMidpoint } = membersOf(value);
  const scale = optionalNumber(givenScale);
  const midpoint = optionalNumber(givenMidpoint);
  if (scale !== null && !(scale > 0)) throw new TroupeError('wrongInput', `Decay scale should be non-zero positive, got ${scale}.`);
  // A line may reach 0 at the scale or stay level; the curves could do neither.
  const fits = midpoint === null || (kind === 'linDecay' ? midpoint >= 0 && midpoint <= 1 : midpoint > 0 && midpoint < 1);
  if (!fits) {
    const range = kind === 'linDecay' ? '[0.0, 1.0]' : '(0.0, 1.0)';
    throw new TroupeError('wrongInput', `Decay midpoint should be in the range ${range}, got ${midpoint}.`);
  }
  return { kind, x: expressionOf(x, depth), target: isGiven(target) ? expressionOf(target, depth) : null, scale, midpoint };
}

function variableOf(name: string): Extract<Expression, { kind: 'score' | 'variable' }> {
  const score = SCORE.exec(name);
  if (score !== null) return { kind: 'score', prefetch: Number(score[1] ?? 0) };
  const steps = name.startsWith('$') ? undefined : parsePath(name);
  if (steps === undefined) {
    throw new TroupeError('wrongInput', `${name} is no variable of a formula: expected \`$score\`, \`$score[n]\` or a payload path`);
  }
  return { kind: 'variable', path: printPath(steps) };
}

function payloadPath(value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw noQuery();
  const variable = variableOf(value);
  if (variable.kind === 'score') throw new TroupeError('wrongInput', `${value} is no payload path`);
  return variable.path;
}

/** A filter's condition, as one that stands alone. */
function conditionOf(object: JsonObject): Condition {
  const condition = decodeFilter({ must: [object] }, 'formula')?.must[0];
  if (condition === undefined) throw noQuery();
  return condition;
}

function geoPointOf(value: JsonValue | undefined): GeoPoint {
  const { lon, lat } = membersOf(value);
  if (typeof lon !== 'number' || typeof lat !== 'number') throw noQuery();
  if (Math.abs(lon) > 180 || Math.abs(lat) > 90) {
    throw new TroupeError('malformedBody', `a place has a lon of -180 to 180 and a lat of -90 to 90, got ${lon} and ${lat}`);
  }
  return { lon, lat };
}

function secondsOf(value: JsonValue | undefined): number {
  if (typeof value !== 'string') throw noQuery();
  const micros = parseDatetime(value);
  if (micros === undefined)
    throw new TroupeError('wrongInput', `failed to parse date-time ${value}: expected one like 2024-03-01T10:00:00Z`);
  return micros / 1e6;
}

function membersOf(value: JsonValue | undefined): JsonObject {
  if (!isObject(value)) throw noQuery();
  return value;
}

function optionalNumber(value: JsonValue | undefined): number | null {
  if (!isGiven(value)) return null;
  if (typeof value !== 'number' && typeof value !== 'bigint') throw noQuery();
  return Number(value);
}

/**
 * The score that a formula gives a point. Arithmetic is in doubles, the score a float32.
 * Source: scenarios query-formula and query-formula-decay.
 */

import { parseDatetime } from '../protocols/datetime.js';
import { TroupeError } from '../protocols/errors.js';
import type { Condition, GeoPoint } from '../protocols/model/filter.js';
import { pathOf } from '../protocols/model/json-path.js';
import type { JsonValue, Payload } from '../protocols/model/payload.js';
import type { Expression } from '../protocols/model/query.js';
import { someValue } from './filter/values.js';
import { distanceMetres } from './geo/distance.js';

/** A point as formulas see it. */
export interface FormulaPoint {
  /** Score that the n-th prefetch gave it; undefined: it was not found there. */
  score(prefetch: number): number | undefined;
  payload(): Payload;
  passes(condition: Condition): boolean;
}

export interface Formula {
  readonly expression: Expression;
  /** Values of variables the point has not, by name: payload paths and `$score[n]`. */
  readonly defaults: { readonly [variable: string]: JsonValue };
}

/**
 * The score of one point.
 * Errors: `wrongInput` where a variable has no value of the type that is needed, or a number is not finite.
 */
export function formulaScore(formula: Formula, point: FormulaPoint): number {
  // Plus 0: the score of nothing is 0, not -0.
  const score = Math.fround(new Evaluation(formula, point).value(formula.expression)) + 0;
  if (!Number.isFinite(score)) throw notFinite('the formula', score);
  return score;
}

type Computed = Exclude<Expression, { kind: 'constant' | 'score' | 'variable' | 'condition' | 'geoDistance' | 'datetime' | 'datetimeKey' }>;

class Evaluation {
  constructor(
    private readonly formula: Formula,
    private readonly point: FormulaPoint,
  ) {}

  value(expression: Expression): number {
    switch (expression.kind) {
      case 'constant':
        return expression.value;
      case 'score':
        return this.score(expression.prefetch);
      case 'variable':
        return this.variable(expression.path);
      case 'condition':
        return this.point.passes(expression.condition) ? 1 : 0;
      case 'geoDistance':
        return distanceMetres(expression.origin, this.place(expression.path));
      case 'datetime':
        return expression.seconds;
      case 'datetimeKey':
        return this.time(expression.path);
      default:
        return this.computed(expression);
    }
  }

  /** An expression of other ones. */
  private computed(expression: Computed): number {
    switch (expression.kind) {
      case 'mult':
        // A condition that does not hold decides a product: what follows it may be missing.
        return expression.terms.reduce((product, term) => (product === 0 ? 0 : product * this.value(term)), 1);
      case 'sum':
        return expression.terms.reduce((sum, term) => sum + this.value(term), 0);
      case 'neg':
        return -this.value(expression.of);
      case 'abs':
        return Math.abs(this.value(expression.of));
      case 'sqrt':
      case 'exp':
      case 'log10':
      case 'ln':
        return this.applied(expression.kind, this.value(expression.of));
      case 'div':
        return this.quotient(expression);
      case 'pow': {
        const base = this.value(expression.base);
        const exponent = this.value(expression.exponent);
        return finite(base ** exponent, () => `${base}^${exponent}`);
      }
      case 'expDecay':
      case 'gaussDecay':
      case 'linDecay':
        return this.decay(expression);
      default:
        return expression satisfies never;
    }
  }

  private score(prefetch: number): number {
    const found = this.point.score(prefetch);
    if (found !== undefined) return found;
    const name = `$score[${prefetch}]`;
    return Object.hasOwn(this.formula.defaults, name) ? (this.formula.defaults[name] as number) : 0;
  }

  private applied(name: 'sqrt' | 'exp' | 'log10' | 'ln', value: number): number {
    const functions = { sqrt: Math.sqrt, exp: Math.exp, log10: Math.log10, ln: Math.log };
    return finite(functions[name](value), () => (name === 'sqrt' ? `√${value}` : `${name}(${value})`));
  }

  private quotient({ left, right, byZeroDefault }: Extract<Expression, { kind: 'div' }>): number {
    const divisor = this.value(right);
    if (divisor === 0 && byZeroDefault !== null) return byZeroDefault;
    const dividend = this.value(left);
    return finite(dividend / divisor, () => `${dividend}/${divisor}`);
  }

  /** 1 at the target, the midpoint at `scale` from it. */
  private decay({ kind, x, target, scale, midpoint }: Extract<Expression, { kind: 'expDecay' | 'gaussDecay' | 'linDecay' }>): number {
    const distance = Math.abs(this.value(x) - (target === null ? 0 : this.value(target))) / (scale ?? 1);
    const middle = midpoint ?? 0.5;
    if (kind === 'linDecay') return Math.max(0, 1 - (1 - middle) * distance);
    return middle ** (kind === 'expDecay' ? distance : distance * distance);
  }

  private variable(path: string): number {
    const value = this.lookUp(path, 'number');
    if (typeof value !== 'number' && typeof value !== 'bigint') throw wrongValue(path, 'number', 'Value is not a number');
    return Number(value);
  }

  private place(path: string): GeoPoint {
    const value = this.lookUp(path, 'geo point');
    if (!isPlace(value)) throw wrongValue(path, 'geo point', 'Value is not a place with `lon` and `lat`');
    return value;
  }

  /** Seconds since the epoch. */
  private time(path: string): number {
    const value = this.lookUp(path, 'datetime');
    const micros = typeof value === 'string' ? parseDatetime(value) : undefined;
    if (micros === undefined) throw wrongValue(path, 'datetime', 'Value is not a date-time');
    return micros / 1e6;
  }

  /**
   * The value at the path, also as the only element of an array, or the default where there is none. Several values are a list, which no
   * variable stands for. Source: scenario query-sample-groups-more.
   */
  private lookUp(path: string, wanted: string): JsonValue {
    const found: JsonValue[] = [];
    someValue(this.point.payload(), pathOf(path), (value) => {
      if (Array.isArray(value)) found.push(...value.slice(0, 2));
      else found.push(value);
      return found.length > 1;
    });
    if (found.length > 0) return found.length === 1 ? (found[0] as JsonValue) : found;
    const { defaults } = this.formula;
    const byDefault = Object.hasOwn(defaults, path) ? defaults[path] : undefined;
    if (byDefault === undefined) throw wrongValue(path, wanted, 'No value found in a payload nor defaults');
    return byDefault;
  }
}

function finite(value: number, text: () => string): number {
  if (!Number.isFinite(value)) throw notFinite(text(), value);
  return value;
}

function notFinite(text: string, value: number): TroupeError {
  return new TroupeError('wrongInput', `The expression ${text} = ${String(value).replace('Infinity', 'inf')} produced a non-finite number`);
}

function wrongValue(path: string, wanted: string, reason: string): TroupeError {
  return new TroupeError(
    'wrongInput',
    `Expected ${wanted} value for ${path} in the payload and/or in the formula defaults. Error: ${reason}`,
  );
}

function isPlace(value: JsonValue): value is JsonValue & GeoPoint {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { lon, lat } = value;
  return typeof lon === 'number' && typeof lat === 'number' && Math.abs(lon) <= 180 && Math.abs(lat) <= 90;
}

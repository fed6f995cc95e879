/** The filter rules once more, as plainly as they can be written: lists of values, no short cuts, no indexes. */

import { parseDatetime } from '../../../protocols/datetime.js';
import type { Condition, Filter, GeoArea, Match, Range } from '../../../protocols/model/filter.js';
import type { JsonValue } from '../../../protocols/model/payload.js';
import { naiveInside } from '../geo/naive.js';
import type { Row } from './arbitrary.js';

export function naiveRows(filter: Filter, rows: readonly Row[]): number[] {
  return rows.flatMap((row, at) => (passes(filter, row.payload, row) ? [at] : []));
}

/** row: undefined within a nested condition. */
function passes(filter: Filter, subject: JsonValue, row: Row | undefined): boolean {
  const hits = (conditions: readonly Condition[]): number => conditions.filter((one) => holds(one, subject, row)).length;
  return (
    hits(filter.must) === filter.must.length &&
    hits(filter.mustNot) === 0 &&
    (filter.should.length === 0 || hits(filter.should) > 0) &&
    (filter.minShould === null || hits(filter.minShould.conditions) >= filter.minShould.minCount)
  );
}

function holds(condition: Condition, subject: JsonValue, row: Row | undefined): boolean {
  switch (condition.kind) {
    case 'filter':
      return passes(condition.filter, subject, row);
    case 'hasId':
      return row !== undefined && condition.ids.includes(row.id);
    case 'hasVector':
      return row?.vectors.includes(condition.name) ?? false;
    case 'nested': {
      const arrays = at(subject, condition.key.replace(/\[\]$/, ''));
      const elements = arrays.flatMap((value) => (Array.isArray(value) ? value : []));
      return elements.some(
        (element) =>
          typeof element === 'object' && element !== null && !Array.isArray(element) && passes(condition.filter, element, undefined),
      );
    }
    case 'isEmpty':
      return at(subject, condition.key).every(isNothing);
    case 'isNull':
      return at(subject, condition.key).includes(null);
    case 'fieldIsEmpty':
      return at(subject, condition.key).every(isNothing) === condition.isEmpty;
    case 'fieldIsNull':
      return elementsAt(subject, condition.key).includes(null) === condition.isNull;
    case 'valuesCount':
      return at(subject, condition.key).some((value) =>
        within(value === null ? 0 : Array.isArray(value) ? value.length : 1, condition.range),
      );
    case 'match':
      return elementsAt(subject, condition.key).some((value) => matches(value, condition.match));
    case 'range':
      return elementsAt(subject, condition.key).some((value) => isNumber(value) && within(value, condition.range));
    case 'geo':
      return elementsAt(subject, condition.key).some((value) => isPlaceIn(value, condition.area));
    case 'datetimeRange':
      return elementsAt(subject, condition.key).some((value) => {
        const time = typeof value === 'string' ? parseDatetime(value) : undefined;
        return time !== undefined && within(time, condition.range);
      });
  }
}

function matches(value: JsonValue, match: Match): boolean {
  const among = (values: readonly JsonValue[]): boolean =>
    values.some((one) => (isNumber(one) && isNumber(value) ? !(one < value) && !(one > value) : one === value));
  if (match.kind === 'value') return among([match.value]);
  if (match.kind === 'any') return among(match.values);
  if (match.kind === 'except') return value !== null && !among(match.values);
  const parts = match.kind === 'textAny' ? match.text.split(/\s/).filter((word) => word !== '') : [match.text];
  return typeof value === 'string' && parts.some((part) => value.includes(part));
}

function within(value: number | bigint, range: Range): boolean {
  return (
    (range.lt === undefined || value < range.lt) &&
    (range.lte === undefined || value <= range.lte) &&
    (range.gt === undefined || value > range.gt) &&
    (range.gte === undefined || value >= range.gte)
  );
}

function isNumber(value: JsonValue): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

function isNothing(value: JsonValue): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}

function isPlaceIn(value: JsonValue, area: GeoArea): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { lon, lat } = value as { lon: unknown; lat: unknown };
  if (!isNumber(lon as JsonValue) || !isNumber(lat as JsonValue)) return false;
  return naiveInside({ lon: Number(lon), lat: Number(lat) }, area);
}

/** Values at the path, array values taken apart. */
function elementsAt(subject: JsonValue, key: string): JsonValue[] {
  return at(subject, key).flatMap((value) => (Array.isArray(value) ? value : [value]));
}

/** Values at a path of plain or quoted keys, `[]` and `[n]`. */
function at(subject: JsonValue, key: string): JsonValue[] {
  let values = [subject];
  for (const [, quoted, plain, brackets, index] of key.matchAll(/"([^"]*)"|([^.[\]"]+)(?![^[]*\])|(\[(\d*)\])/g)) {
    const name = quoted ?? plain;
    values = values.flatMap((value) => {
      if (brackets !== undefined) {
        if (!Array.isArray(value)) return [];
        return index === '' ? value : value.slice(Number(index), Number(index) + 1);
      }
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
      const found = Object.entries(value).find(([one]) => one === name);
      return found === undefined ? [] : [found[1]];
    });
  }
  return values;
}

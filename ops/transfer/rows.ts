/** Rows of a file as points: which columns are the id, the vectors and the payload. */

import { moveFloatMark } from '../../protocols/float-marks.js';
import { parseJson, setMember } from '../../protocols/json.js';
import type { JsonValue } from '../../protocols/model/payload.js';

export type FileRow = Readonly<Record<string, unknown>>;

export interface RowMapping {
  /** The column of ids; null: rows are numbered from `firstId` on. */
  readonly id: string | null;
  readonly firstId: number;
  /** Names of vectors and their columns; the name '' is the unnamed vector. Null: `vector`, and `vector.<name>` for each name. */
  readonly vectors: readonly { readonly name: string; readonly column: string }[] | null;
  readonly shardKey: string | null;
  /** Columns of the payload; null: all that are nothing else. */
  readonly payload: readonly string[] | null;
}

export interface MappedRow {
  readonly point: { readonly id: unknown; readonly vector: unknown; readonly payload: Readonly<Record<string, unknown>> };
  readonly shardKey: unknown;
}

/** What is wrong with a row, in words for whoever wrote the file. */
export class RowProblem extends Error {}

const VECTOR = 'vector';
const PAYLOAD = 'payload';
/** What answers of the API have beside a point. */
const OF_ANSWERS = new Set(['shard_key', 'score', 'version', 'order_value']);

/** number: of the row, from 0. Errors: RowProblem. */
export function mapRow(row: FileRow, number: number, mapping: RowMapping): MappedRow {
  const vectors = mapping.vectors ?? vectorColumns(row);
  const used = new Set([mapping.id, mapping.shardKey, ...vectors.map(({ column }) => column)]);
  const payload = payloadOf(row, mapping.payload, used);
  const id = mapping.id === null ? mapping.firstId + number : idOf(row[mapping.id], mapping.id);
  const point = { id, vector: vectorOf(row, vectors), payload };
  // Whoever prints the point looks for numbers that were written as 1.0.
  moveFloatMark(row, '', point, '', payload);
  return { point, shardKey: mapping.shardKey === null ? null : (row[mapping.shardKey] ?? null) };
}

function vectorColumns(row: FileRow): { name: string; column: string }[] {
  return Object.keys(row)
    .filter((column) => column === VECTOR || column.startsWith(`${VECTOR}.`))
    .map((column) => ({ name: column.slice(VECTOR.length + 1), column }));
}

function idOf(value: unknown, column: string): unknown {
  if (value === undefined || value === null || value === '')
    throw new RowProblem(`there is no id in column '${column}': name the column with --id, or number the rows with --number-rows`);
  if (typeof value === 'string') return /^\d{1,20}$/.test(value) ? plainInteger(BigInt(value)) : value;
  if (typeof value === 'bigint') return plainInteger(value);
  return value;
}

function vectorOf(row: FileRow, columns: readonly { readonly name: string; readonly column: string }[]): unknown {
  const named: [string, unknown][] = [];
  for (const { column, name } of columns) {
    const value = listOf(row[column], column);
    if (value === null) continue;
    // Vectors by name, as the API writes them.
    if (name === '' && isObject(value) && !('indices' in value)) named.push(...Object.entries(value));
    else named.push([name, value]);
  }
  const [first] = named;
  return named.length === 1 && first?.[0] === '' ? first[1] : Object.fromEntries(named);
}

/** Numbers, lists of numbers or an object; null for none. */
function listOf(value: unknown, column: string): unknown {
  if (value === undefined || value === null || value === '') return null;
  if (typeof value === 'string') return listOf(jsonOf(value, column), column);
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<number>);
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'object' && item !== null ? listOf(item, column) : item));
  if (isObject(value)) return value;
  throw new RowProblem(`column '${column}' holds no vector`);
}

function jsonOf(text: string, column: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new RowProblem(`column '${column}' holds no JSON such as [0.1, 0.2]`);
  }
}

function payloadOf(row: FileRow, columns: readonly string[] | null, used: ReadonlySet<string | null>): Record<string, unknown> {
  const given = row[PAYLOAD];
  const whole = typeof given === 'string' && given.startsWith('{') ? jsonOf(given, PAYLOAD) : given;
  const names = (columns ?? Object.keys(row)).filter((name) => !used.has(name));
  if (!isObject(whole)) return fieldsOf(row, names);
  const others = fieldsOf(row, columns === null ? names.filter((name) => name !== PAYLOAD && !OF_ANSWERS.has(name)) : names);
  for (const name of Object.keys(others)) copyMember(others, whole, name, others[name]);
  return whole;
}

function fieldsOf(row: FileRow, names: readonly string[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const name of names) {
    const value = jsonValue(row[name]);
    if (value !== undefined) copyMember(row, fields, name, value);
  }
  return fields;
}

function copyMember(from: FileRow, to: Record<string, unknown>, name: string, value: unknown): void {
  setMember(to as { [key: string]: JsonValue }, name, value as JsonValue);
  moveFloatMark(from, name, to, name, value);
}

/** Values of Parquet that JSON has no words for: dates as RFC 3339, long integers as digits. */
function jsonValue(value: unknown): unknown {
  if (typeof value === 'bigint') return plainInteger(value);
  if (value instanceof Date) return value.toISOString();
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<number>);
  return value;
}

function plainInteger(value: bigint): number | bigint {
  return value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER ? Number(value) : value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

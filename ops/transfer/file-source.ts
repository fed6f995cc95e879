/** Points of a file. */

import { createReadStream, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseJson } from '../../protocols/json.js';
import { wrongArguments } from '../client/tool.js';
import { csvRows } from './csv.js';
import { npyCount, npyVectors } from './npy.js';
import { parquetCount, parquetRows } from './parquet.js';
import type { PointSlice, PointSource } from './point-source.js';
import { type FileRow, mapRow, type RowMapping } from './rows.js';

export const FILE_FORMATS = ['jsonl', 'csv', 'npy', 'parquet'] as const;
export type FileFormat = (typeof FILE_FORMATS)[number];

export interface FileOptions {
  readonly path: string;
  readonly format: FileFormat;
  readonly mapping: RowMapping;
  /** Of CSV. */
  readonly separator: string;
  /** Of CSV: columns whose values stay texts. */
  readonly texts: ReadonlySet<string>;
  /** Of npy: lines of JSON with the payload of each row; null without. */
  readonly payloads: string | null;
}

/** The format that the name of a file tells; null: none. */
export function formatOf(path: string): FileFormat | null {
  const ending = /\.([a-z]+)$/i.exec(path)?.[1]?.toLowerCase() ?? '';
  const also: Readonly<Record<string, FileFormat>> = { ndjson: 'jsonl', tsv: 'csv', pq: 'parquet' };
  return FILE_FORMATS.find((format) => format === ending) ?? also[ending] ?? null;
}

/** A source whose cursor is the number of rows that were read. Errors: ToolError for a file that is not there. */
export async function openFileSource(options: FileOptions): Promise<PointSource> {
  const { format, mapping, path } = options;
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) throw wrongArguments(`there is no file ${path}`);
  const total = format === 'npy' ? await npyCount(path) : format === 'parquet' ? await parquetCount(path) : null;
  return {
    total,
    async *slices(cursor, size): AsyncGenerator<PointSlice> {
      let number = Number(cursor ?? 0);
      let rows: FileRow[] = [];
      for await (const row of rowsFrom(options, number)) {
        rows.push(row);
        if (rows.length < size) continue;
        yield* slicesOf(rows, number, mapping, path);
        number += rows.length;
        rows = [];
      }
      if (rows.length > 0) yield* slicesOf(rows, number, mapping, path);
    },
  };
}

/** One slice for each shard key; only the last one moves the cursor, as all of them are needed before it. */
function* slicesOf(rows: readonly FileRow[], first: number, mapping: RowMapping, path: string): Generator<PointSlice> {
  const byKey = new Map<unknown, object[]>();
  for (const [at, row] of rows.entries()) {
    const { point, shardKey } = mapped(row, first + at, mapping, path);
    const points = byKey.get(shardKey) ?? [];
    points.push(point);
    byKey.set(shardKey, points);
  }
  let left = byKey.size;
  for (const [shardKey, points] of byKey) yield { points, shardKey, cursor: --left === 0 ? first + rows.length : first };
}

function mapped(row: FileRow, number: number, mapping: RowMapping, path: string) {
  try {
    return mapRow(row, number, mapping);
  } catch (error) {
    throw wrongArguments(`${path}, row ${number + 1}: ${(error as Error).message}`);
  }
}

function rowsFrom(options: FileOptions, from: number): AsyncIterable<FileRow> {
  const { format, path, payloads, separator, texts } = options;
  switch (format) {
    case 'jsonl':
      return skipped(jsonLines(path), from);
    case 'csv':
      return skipped(csvRows(createReadStream(path, { encoding: 'utf8' }), { separator, texts }), from);
    case 'npy':
      return arrayRows(path, payloads, from);
    case 'parquet':
      return parquetRows(path, from);
    default:
      return format satisfies never;
  }
}

async function* skipped(rows: AsyncIterable<FileRow>, count: number): AsyncGenerator<FileRow> {
  let left = count;
  for await (const row of rows) if (left-- <= 0) yield row;
}

async function* jsonLines(path: string): AsyncGenerator<FileRow> {
  let line = 0;
  for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    line++;
    if (text.trim() !== '') yield objectOf(text, path, line);
  }
}

function objectOf(text: string, path: string, line: number): FileRow {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    throw wrongArguments(`${path}, line ${line}: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrongArguments(`${path}, line ${line}: no JSON object`);
  return value as FileRow;
}

async function* arrayRows(path: string, payloads: string | null, from: number): AsyncGenerator<FileRow> {
  const lines = payloads === null ? null : skipped(jsonLines(payloads), from)[Symbol.asyncIterator]();
  for await (const vector of npyVectors(path, from)) {
    const line = await lines?.next();
    yield { vector, ...(line?.done === false ? { payload: line.value } : {}) };
  }
  await lines?.return?.(undefined);
}

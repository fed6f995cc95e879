/** Parquet files as rows, and points as a Parquet file. */

import { open } from 'node:fs/promises';
import * as zlib from 'node:zlib';
import type { AsyncBuffer, Compressors, SchemaElement } from 'hyparquet';
import { stringifyJson } from '../../protocols/json.js';
import type { StoredVector } from './collection-copy.js';
import type { FileRow } from './rows.js';

/** Rows in memory at a time while a file is read. */
const ROWS_AT_ONCE = 10_000;
/** Points of a row group of a file that is written. */
const GROUP_ROWS = 10_000;

/** Those of Node.js, beside Snappy and no compression. Zstandard is there from Node.js 22.15 on. */
const COMPRESSORS: Compressors = {
  GZIP: (bytes) => zlib.gunzipSync(bytes),
  BROTLI: (bytes) => zlib.brotliDecompressSync(bytes),
  ...('zstdDecompressSync' in zlib ? { ZSTD: zlib.zstdDecompressSync as (bytes: Uint8Array) => Uint8Array } : {}),
};

export async function parquetCount(path: string): Promise<number> {
  const { parquetMetadataAsync } = await import('hyparquet');
  return withFile(path, async (file) => Number((await parquetMetadataAsync(file)).num_rows));
}

/** Rows from the one with this number on. Errors: a message about the file. */
export async function* parquetRows(path: string, from: number): AsyncGenerator<FileRow> {
  const { parquetMetadataAsync, parquetReadObjects } = await import('hyparquet');
  const { close, file } = await openFile(path);
  try {
    const metadata = await parquetMetadataAsync(file);
    const count = Number(metadata.num_rows);
    for (let start = from; start < count; start += ROWS_AT_ONCE) {
      const rowEnd = Math.min(count, start + ROWS_AT_ONCE);
      yield* (await parquetReadObjects({ file, metadata, compressors: COMPRESSORS, rowStart: start, rowEnd })) as FileRow[];
    }
  } finally {
    await close();
  }
}

async function withFile<Result>(path: string, use: (file: AsyncBuffer) => Promise<Result>): Promise<Result> {
  const { close, file } = await openFile(path);
  return use(file).finally(close);
}

async function openFile(path: string): Promise<{ file: AsyncBuffer; close: () => Promise<void> }> {
  const handle = await open(path);
  const { size } = await handle.stat();
  const slice = async (start: number, end = size): Promise<ArrayBuffer> => {
    const bytes = new Uint8Array(end - start);
    await handle.read(bytes, 0, bytes.length, start);
    return bytes.buffer;
  };
  return { file: { byteLength: size, slice }, close: () => handle.close() };
}

export interface WrittenPoint {
  readonly id: unknown;
  readonly vector?: unknown;
  readonly payload?: unknown;
  readonly shard_key?: unknown;
}

/**
 * Writes points: `id` as text, `vector` or `vector.<name>` (dense ones as lists of float32, others as JSON), `payload` as JSON, and `shard_key`
 * where there are any.
 */
export async function openParquetWriter(path: string, vectors: readonly Pick<StoredVector, 'name' | 'isDense'>[], hasShardKeys: boolean) {
  const { ParquetWriter, fileWriter } = await import('hyparquet-writer');
  const columns = vectors.map((vector) => ({ ...vector, column: vector.name === '' ? 'vector' : `vector.${vector.name}` }));
  const text = (name: string, repetition: 'REQUIRED' | 'OPTIONAL'): SchemaElement => ({
    name,
    type: 'BYTE_ARRAY',
    converted_type: 'UTF8',
    repetition_type: repetition,
  });
  const schema: SchemaElement[] = [
    { name: 'root', num_children: 2 + columns.length + (hasShardKeys ? 1 : 0) },
    text('id', 'REQUIRED'),
    ...columns.flatMap(({ column, isDense }): SchemaElement[] =>
      isDense
        ? [
            { name: column, repetition_type: 'OPTIONAL', converted_type: 'LIST', num_children: 1 },
            { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
            { name: 'element', type: 'FLOAT', repetition_type: 'REQUIRED' },
          ]
        : [text(column, 'OPTIONAL')],
    ),
    text('payload', 'REQUIRED'),
    ...(hasShardKeys ? [text('shard_key', 'OPTIONAL')] : []),
  ];
  const writer = new ParquetWriter({ writer: fileWriter(path), schema, statistics: false, createdBy: 'troupe' });
  let waiting: WrittenPoint[] = [];
  const flush = async (): Promise<void> => {
    if (waiting.length === 0) return;
    const points = waiting;
    waiting = [];
    const columnData = [
      { name: 'id', data: points.map(({ id }) => String(id)) },
      ...columns.map(({ column, isDense, name }) => ({
        name: column,
        data: points.map((point) => shown(vectorNamed(point, name), isDense)),
      })),
      { name: 'payload', data: points.map(({ payload }) => stringifyJson(payload ?? {})) },
      ...(hasShardKeys ? [{ name: 'shard_key', data: points.map(({ shard_key: key }) => (key == null ? null : String(key))) }] : []),
    ];
    await writer.write({ columnData, rowGroupSize: points.length });
  };
  return {
    async write(points: readonly WrittenPoint[]): Promise<void> {
      waiting.push(...points);
      if (waiting.length >= GROUP_ROWS) await flush();
    },
    async end(): Promise<void> {
      await flush();
      await writer.finish();
    },
  };
}

function vectorNamed({ vector }: WrittenPoint, name: string): unknown {
  if (vector === undefined || vector === null) return null;
  if (Array.isArray(vector)) return name === '' ? vector : null;
  return (vector as Record<string, unknown>)[name] ?? null;
}

function shown(vector: unknown, isDense: boolean): unknown {
  return vector === null || isDense ? vector : stringifyJson(vector);
}

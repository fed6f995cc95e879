/** Arrays of NumPy (`.npy`) as vectors. Source: NEP 1, versions 1 to 3 of the format. */

import { type FileHandle, open } from 'node:fs/promises';
import { fromHalf } from '../../vectors/half.js';

interface NpyHeader {
  readonly descr: string;
  readonly shape: readonly number[];
  /** Where numbers begin. */
  readonly offset: number;
}

/** Bytes of a number, and how it is read. */
const NUMBERS: Readonly<Record<string, readonly [number, (view: DataView, at: number) => number]>> = {
  '<f2': [2, (view, at) => fromHalf(view.getUint16(at, true))],
  '<f4': [4, (view, at) => view.getFloat32(at, true)],
  '<f8': [8, (view, at) => view.getFloat64(at, true)],
  '|u1': [1, (view, at) => view.getUint8(at)],
  '|i1': [1, (view, at) => view.getInt8(at)],
  '<i4': [4, (view, at) => view.getInt32(at, true)],
};
const CHUNK_BYTES = 1 << 22;

/** The number of vectors. Errors: a message about the file. */
export async function npyCount(path: string): Promise<number> {
  const file = await open(path);
  try {
    return (await headerOf(file, path)).shape[0] as number;
  } finally {
    await file.close();
  }
}

/** Vectors [count, dim] as lists of numbers, or multivectors [count, rows, dim]; from the one with this number on. */
export async function* npyVectors(path: string, from: number): AsyncGenerator<number[] | number[][]> {
  const file = await open(path);
  try {
    const { descr, offset, shape } = await headerOf(file, path);
    const [bytes, read] = NUMBERS[descr] as (typeof NUMBERS)[string];
    const [count = 0, ...inner] = shape;
    const numbers = inner.reduce((product, one) => product * one, 1);
    const rowBytes = numbers * bytes;
    const atOnce = Math.max(1, Math.floor(CHUNK_BYTES / rowBytes));
    for (let row = from; row < count; row += atOnce) {
      const rows = Math.min(atOnce, count - row);
      const buffer = Buffer.alloc(rows * rowBytes);
      const { bytesRead } = await file.read(buffer, 0, buffer.length, offset + row * rowBytes);
      if (bytesRead < buffer.length)
        throw new Error(`${path} ends early: it has no vector ${row + Math.floor(bytesRead / rowBytes)} of ${count}`);
      const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
      for (let at = 0; at < rows; at++) {
        const flat = Array.from({ length: numbers }, (_, number) => read(view, at * rowBytes + number * bytes));
        yield inner.length === 1 ? flat : folded(flat, inner[1] as number);
      }
    }
  } finally {
    await file.close();
  }
}

function folded(flat: readonly number[], dim: number): number[][] {
  return Array.from({ length: flat.length / dim }, (_, row) => flat.slice(row * dim, (row + 1) * dim));
}

async function headerOf(file: FileHandle, path: string): Promise<NpyHeader> {
  const head = Buffer.alloc(12);
  await file.read(head, 0, 12, 0);
  if (head.toString('latin1', 0, 6) !== '\u0093NUMPY') throw new Error(`${path} is no array of NumPy (.npy)`);
  const isFirst = head[6] === 1;
  const length = isFirst ? head.readUInt16LE(8) : head.readUInt32LE(8);
  const start = isFirst ? 10 : 12;
  const text = Buffer.alloc(length);
  await file.read(text, 0, length, start);
  const header = text.toString('utf8');
  const descr = /'descr': '([^']+)'/.exec(header)?.[1] ?? '';
  const shape = (/'shape': \(([^)]*)\)/.exec(header)?.[1] ?? '')
    .split(',')
    .filter((part) => part.trim() !== '')
    .map(Number);
  if (/'fortran_order': True/.test(header)) throw new Error(`${path} has its columns first: save numpy.ascontiguousarray(array)`);
  if (NUMBERS[descr] === undefined) throw new Error(`${path} has numbers of type ${descr}: save array.astype('<f4')`);
  if (shape.length < 2 || shape.length > 3 || shape.some((size) => !(size >= 1)))
    throw new Error(`${path} has the shape (${shape.join(', ')}): it must be (count, dim), or (count, rows, dim) for multivectors`);
  return { descr, shape, offset: start + length };
}

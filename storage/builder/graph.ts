/** Building of HNSW graphs with usearch: the only importer of the package. We search the graphs ourselves. */

import fs from 'node:fs';
import usearch from 'usearch';
import { TroupeError } from '../../protocols/errors.js';
import type { BuiltGraph } from '../../vectors/built-graph.js';
import { readUsearchGraph } from '../../vectors/usearch-graph.js';
import { readFully } from '../disk/file.js';
import type { BuildMetric, GraphElement } from './element.js';

export interface GraphOptions {
  readonly dim: number;
  readonly metric: BuildMetric;
  readonly element: GraphElement;
  readonly m: number;
  readonly efConstruct: number;
  readonly threads: number;
}

/** Collects rows and becomes a graph. `add` blocks its thread while `threads` of usearch's own work. */
export class GraphBuilder {
  private readonly index: Index;

  constructor(private readonly options: GraphOptions) {
    this.index = emptyIndex(options);
  }

  /** rows: keys; values: [rows, dim], Int8Array for i8 and Float32Array for the other types, at the start of its buffer. */
  add(rows: Uint32Array, values: Int8Array | Float32Array): void {
    const keys = new BigUint64Array(rows.length);
    for (let i = 0; i < rows.length; i++) keys[i] = BigInt(rows[i] as number);
    this.index.add(keys, values as Float32Array, this.options.threads);
  }

  /** The graph, by way of a file at `file`, which is removed. The builder is empty afterwards. */
  finish(file: string): BuiltGraph {
    try {
      save(this.index, file);
      this.empty(`${file}.empty`);
      return readUsearchGraph(readWithoutMatrix(file));
    } finally {
      fs.rmSync(file, { force: true });
    }
  }

  /**
   * Frees what usearch holds, before the graph comes to memory. usearch frees nothing else before its object is collected, which V8 takes for small, and has no
   * call for that; but one that loads a file gives up what it had.
   */
  private empty(file: string): void {
    try {
      save(emptyIndex(this.options), file);
      this.index.load(file);
    } finally {
      fs.rmSync(file, { force: true });
    }
  }
}

type Index = InstanceType<typeof usearch.Index>;

function emptyIndex(options: GraphOptions): Index {
  return new usearch.Index({
    dimensions: options.dim,
    metric: (options.metric === 'ip' ? usearch.MetricKind.IP : usearch.MetricKind.L2sq) as never,
    quantization: options.element as never,
    connectivity: options.m,
    expansion_add: options.efConstruct,
    expansion_search: 1,
    multi: false,
  } as never);
}

/** Errors: `storage`, naming the file. */
function save(index: Index, file: string): void {
  try {
    index.save(file);
  } catch (error) {
    throw new TroupeError('storage', `${file}: ${(error as Error).message}`, { cause: error });
  }
}

/** A saved index with its matrix (which is most of it, and which we have) left out: a matrix of rows of no bytes. */
function readWithoutMatrix(file: string): Uint8Array {
  const fd = fs.openSync(file, 'r');
  try {
    const head = Buffer.alloc(8);
    readFully(fd, head, 0, file);
    const matrixBytes = head.readUInt32LE(0) * head.readUInt32LE(4);
    const rest = new Uint8Array(8 + fs.fstatSync(fd).size - 8 - matrixBytes);
    rest.set(head.subarray(0, 4));
    const chunkBytes = 1 << 26;
    for (let at = 8; at < rest.length; at += chunkBytes) readFully(fd, rest.subarray(at, at + chunkBytes), at + matrixBytes, file);
    return rest;
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * The baseline, a process of its own: usearch on the same vectors, called directly with no server around it.
 * Also finds the exact answers that recall is counted against.
 */

import { readFileSync } from 'node:fs';
import { exactSearch, Index, type MetricKind, type ScalarKind } from 'usearch';
import type { BaselineBuild, BaselineData, BaselineSearch, ToBaseline, Truth } from './jobs.js';

process.on('message', (message: ToBaseline) => {
  try {
    process.send?.({ ok: true, value: answer(message) });
  } catch (error) {
    process.send?.({ ok: false, error: String(error) });
  }
});
process.on('disconnect', () => process.exit(0));

const files = new Map<string, Float32Array>();

function answer(message: ToBaseline): Truth | BaselineBuild | BaselineSearch {
  switch (message.kind) {
    case 'truth':
      return truth(message.data, message.rows, message.k);
    case 'build':
      return build(message.data, message.connectivity, message.expansionAdd, message.indexFile);
    case 'search':
      return search(message.data, message.connectivity, message.indexFile, message.ef, message.k, message.seconds);
  }
}

function floats(file: string): Float32Array {
  let values = files.get(file);
  if (values === undefined) {
    const bytes = readFileSync(file);
    // A copy of its own: usearch takes arrays from the start of their buffers only.
    values = new Float32Array(bytes.length / 4);
    new Uint8Array(values.buffer).set(bytes);
    files.set(file, values);
  }
  return values;
}

function truth(data: BaselineData, rows: Uint32Array | null, k: number): Truth {
  const all = floats(data.vectorsFile);
  const searched = rows === null ? all : gather(all, rows, data.dim);
  const kept = Math.min(k, searched.length / data.dim);
  const matches = exactSearch(searched, floats(data.queriesFile), data.dim, kept, data.metric as MetricKind, data.threads);
  const found = Uint32Array.from(matches.keys, Number);
  return { k: kept, rows: rows === null ? found : found.map((at) => rows[at] as number) };
}

function gather(values: Float32Array, rows: Uint32Array, dim: number): Float32Array {
  const gathered = new Float32Array(rows.length * dim);
  rows.forEach((row, i) => {
    gathered.set(values.subarray(row * dim, (row + 1) * dim), i * dim);
  });
  return gathered;
}

function makeIndex(data: BaselineData, connectivity: number, expansionAdd: number, expansionSearch: number): Index {
  return new Index({
    dimensions: data.dim,
    metric: data.metric as MetricKind,
    quantization: 'f32' as ScalarKind,
    connectivity,
    expansion_add: expansionAdd,
    expansion_search: expansionSearch,
    multi: false,
  });
}

function build(data: BaselineData, connectivity: number, expansionAdd: number, indexFile: string): BaselineBuild {
  const vectors = floats(data.vectorsFile);
  const keys = BigUint64Array.from({ length: vectors.length / data.dim }, (_, i) => BigInt(i));
  const index = makeIndex(data, connectivity, expansionAdd, 64);
  const cpu = process.cpuUsage();
  const started = performance.now();
  index.add(keys, vectors, data.threads);
  const seconds = (performance.now() - started) / 1000;
  const cpuSeconds = cpuMs(cpu) / 1000;
  index.save(indexFile);
  return { seconds, cpuSeconds };
}

/** One query after the other on one thread, for `seconds` but each query at least once. The first pass warms up and counts recall. */
function search(data: BaselineData, connectivity: number, indexFile: string, ef: number, k: number, seconds: number): BaselineSearch {
  const queries = floats(data.queriesFile);
  const count = queries.length / data.dim;
  const rowsOf = Array.from({ length: count }, (_, i) => queries.slice(i * data.dim, (i + 1) * data.dim));
  const index = makeIndex(data, connectivity, 100, ef);
  index.load(indexFile);
  const rows = new Uint32Array(count * k);
  rowsOf.forEach((query, i) => {
    rows.set(Array.from(index.search(query, k, 1).keys, Number), i * k);
  });

  const latencies: number[] = [];
  const cpu = process.cpuUsage();
  const started = performance.now();
  let last = started;
  while (latencies.length < count || last - started < seconds * 1000) {
    index.search(rowsOf[latencies.length % count] as Float32Array, k, 1);
    const now = performance.now();
    latencies.push(now - last);
    last = now;
  }
  const cpuMsPerQuery = cpuMs(cpu) / latencies.length;
  const sorted = Float64Array.from(latencies).sort();
  return {
    ef,
    cpuMsPerQuery,
    queriesPerSecond: latencies.length / ((last - started) / 1000),
    p50: sorted[Math.floor(sorted.length * 0.5)] as number,
    p99: sorted[Math.floor(sorted.length * 0.99)] as number,
    rows,
  };
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const used = process.cpuUsage(since);
  return (used.user + used.system) / 1000;
}

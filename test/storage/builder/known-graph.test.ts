import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import usearch from 'usearch';
import type { VectorParams } from '../../../protocols/model/collection.js';
import { normalizeSigned } from '../../../storage/builder/element.js';
import { presentRows } from '../../../storage/builder/matrix.js';
import { measureRecall } from '../../../storage/builder/recall.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import type { BuildJob } from '../../../storage/threads/messages.js';
import { graphPlan, readUsearchGraph, usearchFile, writeGraph } from '../../../vectors/usearch-graph.js';
import { replicaFolder } from '../segment/fixture.js';
import { buildSegment, clusteredRows, freeControl, makeConfig, makeJob, makeSource, payloadsFrom, randomFrom } from './fixture.js';

const DIM = 16;
const params: VectorParams = { size: DIM, distance: 'Euclid' };
const config = makeConfig(params);
const rows = clusteredRows(4500, DIM, { clusters: 40, range: 1, spread: 0.3, seed: 5 });
const folder = replicaFolder();
test.before(() => initChecksum());

/** Rows [from, to) as an appendable segment; every ninth has no vector. */
function source(id: number, from: number, to: number): SegmentHandle {
  const of = (row: number) => ((from + row) % 9 === 0 ? undefined : rows[from + row]);
  return makeSource({ id, rows: to - from, vectors: { '': { params, of } }, idOf: (row) => from + row });
}

/** Builds; tells from how many linked rows each graph began. */
async function build(job: BuildJob): Promise<{ handle: SegmentHandle; begun: number[] }> {
  const begun: number[] = [];
  let stage = '';
  const progress = (next: string, done: number) => {
    if (next !== stage && next.startsWith('building')) begun.push(done);
    stage = next;
  };
  const { handle } = await buildSegment(job, () => payloadsFrom(() => '{}'), { ...freeControl, progress });
  return { handle, begun };
}

function recallOf({ layout, memory, rows: count }: SegmentHandle): number {
  const vector = layout.vectors[0];
  assert.ok(vector?.graph);
  return measureRecall({ layout, memory, vector, rows: count, present: presentRows(memory, vector, count) }, 64, 0.95);
}

test('a build goes on from the largest graph of its sources, and links anew where rows of that are deleted or settings differ', async () => {
  const large = await build(makeJob({ folder, config, sources: [source(1, 0, 3000)], rows: [3000], segmentId: 10 }));
  assert.deepEqual(large.begun, [0]);
  const sources = [source(2, 3000, 4500), large.handle];
  const merged = await build(makeJob({ folder, config, sources, rows: [1500, 3000], segmentId: 11 }));
  assert.deepEqual(merged.begun, [2666]);
  assert.ok(recallOf(merged.handle) >= 0.95, `recall ${recallOf(merged.handle)}`);
  // A graph that was merged is a graph to go on from.
  const alone = await build(makeJob({ folder, config, sources: [merged.handle], rows: [4500], segmentId: 12 }));
  assert.ok(recallOf(alone.handle) >= 0.95);
  const denser = makeConfig(params, { m: 12 });
  assert.deepEqual((await build(makeJob({ folder, config: denser, sources, rows: [1500, 3000], segmentId: 13 }))).begun, [0]);
  new Uint32Array(large.handle.memory.buffer, large.handle.layout.deletedAt, 3000)[7] = 1;
  assert.deepEqual((await build(makeJob({ folder, config, sources, rows: [1500, 3000], segmentId: 14 }))).begun, [0]);
});

test('a graph goes back into the file that it came from, with the rows as usearch keeps them', () => {
  const count = 2000;
  const random = randomFrom(3);
  const values = Int8Array.from({ length: count * DIM }, () => Math.floor(random() * 255) - 127);
  const index = new usearch.Index({
    dimensions: DIM,
    metric: usearch.MetricKind.L2sq as never,
    quantization: 'i8' as never,
    connectivity: 8,
    expansion_add: 32,
    expansion_search: 1,
    multi: false,
  } as never);
  const saved = (): Buffer => {
    const file = path.join(folder, 'known.usearch');
    index.save(file);
    return fs.readFileSync(file);
  };
  const empty = saved();
  const rowNumbers = Uint32Array.from({ length: count }, (_, row) => row);
  index.add(BigUint64Array.from(rowNumbers, BigInt), values as never, 1);
  const file = saved();
  const graph = readUsearchGraph(file);
  const plan = graphPlan(graph);
  const upperIndex = count * (1 + plan.m0) * 4;
  const layout = { ...plan, level0: 0, upperIndex, upper: upperIndex + count * 4 };
  const pages = Math.ceil((layout.upper + plan.upperWords * 4) / 65_536);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  writeGraph(graph, undefined, memory, layout, count);
  const { before, behind } = usearchFile(empty, { memory, layout, rows: rowNumbers, keys: rowNumbers }, DIM);
  normalizeSigned(values, DIM);
  assert.ok(plan.maxLevel >= 2);
  assert.ok(Buffer.concat([before, Buffer.from(values.buffer), behind]).equals(file));
});

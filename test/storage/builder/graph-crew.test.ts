import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import { GraphCrew } from '../../../storage/builder/graph-crew.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { sharedMemory } from '../../../storage/segment/shared-memory.js';
import type { BuiltGraph } from '../../../vectors/built-graph.js';
import { GraphMaker } from '../../../vectors/graph-maker.js';
import { stepCounts } from '../../../vectors/maker-thread.js';
import { testSeed } from '../../seed.js';
import { replicaFolder } from '../segment/fixture.js';
import { buildSegment, freeControl, makeConfig, makeJob, makeSource, payloadsFrom } from './fixture.js';

const DIM = 48;
const ROWS = 20_000;
const THREADS = 4;

async function madeBy(crew: GraphCrew | null, codes: Uint8Array): Promise<BuiltGraph> {
  const options = { rows: ROWS, dim: DIM, m: 8, efConstruct: 100, threads: 1 + (crew?.size ?? 0) };
  const maker = new GraphMaker(options, sharedMemory, crew);
  maker.codes.set(codes);
  const keys = Uint32Array.from({ length: ROWS }, (_, row) => row);
  return maker.make(keys, null, async () => {});
}

test('several threads make the graph that one makes, but for rows that are equally near', async () => {
  const random = seededRandom(testSeed());
  const centres = Array.from({ length: 200 * DIM }, () => 40 + random.integer(170));
  const codes = Uint8Array.from({ length: ROWS * DIM }, (_, at) => {
    const centre = ((Math.floor(at / DIM) * 7) % 200) * DIM + (at % DIM);
    return (centres[centre] as number) + random.integer(80) - 40;
  });
  const crew = await GraphCrew.start(THREADS - 1);
  try {
    assert.equal(crew.size, THREADS - 1);
    const alone = await madeBy(null, codes);
    // A crew makes one graph after the other.
    for (let n = 0; n < 2; n++) {
      const together = await madeBy(crew, codes);
      const linksOf = (graph: BuiltGraph, row: number) => Array.from(graph.neighbours(row, 0)).sort().join();
      const others = alone.keys.filter((row) => linksOf(alone, row) !== linksOf(together, row));
      assert.ok(others.length < ROWS / 100, `${others.length} rows have other links`);
    }
  } finally {
    await crew.close();
  }
});

test('a thread that ends ends the step that waits for it', async () => {
  const ends = new URL(
    `data:text/javascript,${encodeURIComponent("import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => process.exit(3)); parentPort.postMessage('ready');")}`,
  );
  const crew = await GraphCrew.start(2, ends);
  try {
    const step = crew.work({ kind: 'begin' }, stepCounts());
    await assert.rejects(step, /a thread of the build has ended$/);
    await assert.rejects(crew.work({ kind: 'begin' }, stepCounts()), /a thread of the build has ended$/);
  } finally {
    await crew.close();
  }
});

test('threads that cannot begin are done without', async () => {
  const crew = await GraphCrew.start(2, new URL('data:text/javascript,syntax error'));
  assert.equal(crew.size, 0);
  await crew.work({ kind: 'begin' }, stepCounts());
  await crew.close();
});

test('a build has a crew help with a large graph, and not with a small one', async () => {
  await initChecksum();
  const folder = replicaFolder();
  const random = seededRandom(testSeed());
  const steps: string[] = [];
  const crew = await GraphCrew.start(1);
  const watched = {
    size: crew.size,
    begin: crew.begin.bind(crew),
    work: async (...asked: Parameters<GraphCrew['work']>) => {
      steps.push(asked[0].kind);
      await crew.work(...asked);
    },
  };
  try {
    for (const rows of [2000, 16_000]) {
      steps.length = 0;
      const source = makeSource({
        id: 1,
        rows,
        vectors: { '': { params: { size: 8, distance: 'Euclid' }, of: () => Float32Array.from({ length: 8 }, () => random.unit()) } },
        idOf: (row) => row,
      });
      const config = makeConfig({ size: 8, distance: 'Euclid' });
      const job = { ...makeJob({ folder, config, sources: [source], rows: [rows], segmentId: rows }), threads: 2 };
      const { report } = await buildSegment(job, () => payloadsFrom(() => '{}'), { ...freeControl, crew: async () => watched });
      assert.deepEqual([...new Set(steps)], rows === 2000 ? [] : ['begin', 'meet', 'choose', 'linkBack']);
      assert.ok((report.graphs[0]?.recall ?? 0) > 0.95);
    }
  } finally {
    await crew.close();
    fs.rmSync(folder, { recursive: true });
  }
});

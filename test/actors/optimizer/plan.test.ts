import assert from 'node:assert/strict';
import test from 'node:test';
import { describePlan, type PlanFacts, planOptimization, type TooLargeBuild } from '../../../actors/optimizer/plan.js';
import type {
  CollectionConfig,
  HnswConfig,
  OptimizersConfig,
  QuantizationConfig,
  VectorParams,
  VectorsConfig,
} from '../../../protocols/model/collection.js';
import { NO_TAG } from '../../../protocols/model/shard-log.js';
import type { SubgraphSetting } from '../../../storage/segment/layout.js';
import type { ReplicaStats, SegmentStats } from '../../../storage/threads/messages.js';

const DIM = 256;
/** Bytes of a row's vector: 1 KB, so that rows and kilobytes are the same number. */
const ROW_BYTES = DIM * 4;
const NOW_MS = 100_000;

function config(optimizers: Partial<OptimizersConfig> = {}): CollectionConfig {
  return {
    params: {
      vectors: { size: DIM, distance: 'Cosine' },
      shard_number: 1,
      replication_factor: 1,
      write_consistency_factor: 1,
      on_disk_payload: true,
    },
    hnsw_config: { m: 16, ef_construct: 100, full_scan_threshold: 10_000 },
    optimizer_config: {
      deleted_threshold: 0.2,
      vacuum_min_vector_number: 1000,
      default_segment_number: 0,
      max_segment_size: null,
      memmap_threshold: null,
      indexing_threshold: 10_000,
      flush_interval_sec: 5,
      max_optimization_threads: null,
      ...optimizers,
    },
    wal_config: { wal_capacity_mb: 32, wal_segments_ahead: 0 },
    quantization_config: null,
  };
}

function segment(id: number, rows: number, facts: Partial<SegmentStats> = {}): SegmentStats {
  return {
    id,
    kind: 'sealed',
    rows,
    deleted: 0,
    vectorBytes: rows * ROW_BYTES,
    payloadBytes: 0,
    frozen: true,
    deferred: false,
    building: false,
    indexedVectors: rows,
    missingFields: [],
    graphs: [{ name: '', m: 16, efConstruct: 100 }],
    quantized: [],
    damagedFiles: [],
    ...facts,
  };
}

const plain = (id: number, rows: number, facts: Partial<SegmentStats> = {}) =>
  segment(id, rows, { graphs: [], indexedVectors: 0, ...facts });
const active = (id: number, rows: number, facts: Partial<SegmentStats> = {}) =>
  plain(id, rows, { kind: 'appendable', frozen: false, ...facts });
const full = (id: number, rows: number, facts: Partial<SegmentStats> = {}) => plain(id, rows, { kind: 'appendable', ...facts });

interface Scene {
  quietMs?: number;
  optimizers?: Partial<OptimizersConfig>;
  running?: number[];
  merging?: boolean;
  /** For so long rows without a graph have gathered. */
  gatheredMs?: number;
  paceBytesPerSecond?: number;
  resultBytesMax?: number;
  quantization?: QuantizationConfig;
  hnsw?: Partial<HnswConfig>;
  fields?: ReplicaStats['fields'];
  readers?: number;
  vectors?: VectorsConfig;
  tooLarge?: TooLargeBuild;
}

function plan(segments: SegmentStats[], scene: Scene = {}): string {
  const stats: ReplicaStats = {
    key: 'c/0',
    deferredPoints: 0,
    defers: false,
    points: segments.reduce((total, { rows, deleted }) => total + rows - deleted, 0),
    segments,
    fields: scene.fields ?? new Map(),
    fieldPoints: new Map(),
    appliedOperation: 1,
    queuedOperations: 0,
    commits: 1,
    walBytes: 0,
    database: null,
    lastWriteMs: NOW_MS - (scene.quietMs ?? 60_000),
    position: { last: NO_TAG, base: NO_TAG },
  };
  const facts: PlanFacts = {
    nowMs: NOW_MS,
    cpus: 2,
    runningSources: new Set(scene.running ?? []),
    ...(scene.resultBytesMax === undefined ? {} : { resultBytesMax: scene.resultBytesMax }),
    ...(scene.merging ? { isMerging: true } : {}),
    ...(scene.gatheredMs === undefined ? {} : { gatheringSinceMs: NOW_MS - scene.gatheredMs }),
    ...(scene.paceBytesPerSecond === undefined ? {} : { paceBytesPerSecond: scene.paceBytesPerSecond }),
    ...(scene.readers === undefined ? {} : { readers: scene.readers }),
    tooLarge: scene.tooLarge ?? null,
  };
  const { hnsw_config, ...others } = config(scene.optimizers);
  const params = { ...others.params, vectors: scene.vectors ?? others.params.vectors };
  const changed = { ...others, params, hnsw_config: { ...hnsw_config, ...scene.hnsw }, quantization_config: scene.quantization ?? null };
  return describePlan(planOptimization(stats, changed, facts));
}

test('an empty replica and one below the threshold have nothing to do', () => {
  assert.equal(plan([]), 'nothing to do');
  assert.equal(plan([active(1, 0)]), 'nothing to do');
  assert.equal(plan([active(1, 10_000)]), 'nothing to do');
});

test('rows above the threshold are indexed in one build once the upload pauses', () => {
  assert.equal(plan([active(1, 10_001)]), 'indexing: 1 to one segment with a graph');
  assert.equal(plan([full(1, 8000), full(2, 8000), active(3, 100)]), 'indexing: 1 + 2 + 3 to one segment with a graph');
});

test('where memory is short a build makes a smaller segment, of one source at least', () => {
  const sources = [full(1, 8000), full(2, 8000), full(3, 8000)];
  assert.equal(plan(sources, { resultBytesMax: 16_000 * ROW_BYTES }), 'indexing: 1 + 2 to one segment with a graph');
  assert.equal(plan([full(1, 30_000)], { resultBytesMax: 16_000 * ROW_BYTES }), 'indexing: 1 to one segment with a graph');
});

test('while an upload runs, indexing waits for its pause', () => {
  assert.equal(plan([active(1, 20_000)], { quietMs: 300 }), 'look again in 700 ms: indexing waits for the upload to pause');
  assert.equal(plan([active(1, 20_000)], { quietMs: 1000 }), 'indexing: 1 to one segment with a graph');
});

test('an upload that outgrows 32 thresholds is indexed while it runs, full segments first', () => {
  const segments = [full(1, 160_000), full(2, 160_000), active(3, 5000)];
  assert.equal(plan(segments, { quietMs: 0 }), 'indexing: 1 + 2 to one segment with a graph');
  assert.equal(plan([active(1, 320_000)], { quietMs: 0 }), 'indexing: 1 to one segment with a graph');
  assert.equal(plan([segment(9, 900_000), ...segments], { quietMs: 0 }), 'look again in 1000 ms: indexing waits for the upload to pause');
});

test('an upload has paused after an eighth of the time that it took, a second at most', () => {
  // Faster than a paced stream.
  const upload = (gatheredMs: number, quietMs: number) => plan([active(1, 200_000)], { gatheredMs, quietMs });
  assert.equal(upload(100, 299), 'look again in 1 ms: indexing waits for the upload to pause');
  assert.equal(upload(100, 300), 'indexing: 1 to one segment with a graph');
  assert.equal(upload(4001, 500), 'look again in 1 ms: indexing waits for the upload to pause');
  assert.equal(upload(4000, 500), 'indexing: 1 to one segment with a graph');
  assert.equal(upload(60_000, 999), 'look again in 1 ms: indexing waits for the upload to pause');
  assert.equal(upload(60_000, 1000), 'indexing: 1 to one segment with a graph');
});

test('a paced stream is indexed as soon as its rows exceed the threshold, beside other builds, and alone', () => {
  const waits = (ms: number) => `look again in ${ms} ms: indexing waits for the upload to pause`;
  const stream = (gatheredMs: number, rows = 12_000) => plan([segment(1, 30_000), active(2, rows)], { quietMs: 0, gatheredMs });
  assert.equal(stream(5000), 'indexing: 2 to one segment with a graph');
  assert.equal(stream(3999), waits(500), 'rows gather for four seconds');
  assert.equal(stream(5000, 10_000), 'look again in 5000 ms');
  // 2.5 MB a second are what two CPUs keep up with.
  assert.equal(stream(10_000, 24_000), 'indexing: 2 to one segment with a graph');
  assert.equal(stream(10_000, 25_000), waits(1000));
  const among = (paceBytesPerSecond: number) => plan([active(2, 12_000)], { quietMs: 0, gatheredMs: 10_000, paceBytesPerSecond });
  assert.equal(among(2.5e6), 'indexing: 2 to one segment with a graph');
  assert.equal(among(2.6e6), waits(1000), 'other shards of the node get their share');
  const beside = [segment(1, 30_000), full(2, 12_000), active(3, 12_000)];
  assert.equal(plan(beside, { quietMs: 0, gatheredMs: 5000, running: [1, 2] }), 'indexing: 3 to one segment with a graph');
  assert.equal(plan(beside, { quietMs: 0, gatheredMs: 500, running: [1, 2] }), 'nothing to do');
});

test('what a paced stream leaves is merged while it runs: eight segments, none larger than the smaller ones together, one merge at a time', () => {
  const stream = (sizes: number[], scene: Scene = {}) =>
    plan([...sizes.map((rows, id) => segment(id + 1, rows)), active(19, 2000)], { quietMs: 0, gatheredMs: 1000, ...scene });
  const equal = (count: number) => Array.from({ length: count }, () => 12_000);
  assert.equal(stream(equal(7)), 'look again in 5000 ms: merge waits for the upload to pause');
  const eight = 'merge: 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 to one segment with a graph';
  assert.equal(stream(equal(8)), eight);
  assert.equal(stream([84_000, ...equal(7)]), eight);
  assert.equal(stream([85_000, ...equal(7)]), 'look again in 5000 ms: merge waits for the upload to pause');
  assert.equal(stream(equal(8), { merging: true, running: [7] }), 'nothing to do');
  const named = (default_segment_number: number) => stream(equal(8), { optimizers: { default_segment_number } });
  assert.equal(named(1), eight);
  assert.equal(named(2), 'look again in 5000 ms: merge waits for the upload to pause');
  const uploading = equal(8).map((rows, id) => segment(id + 1, rows));
  assert.equal(
    plan([...uploading, active(9, 21_000)], { quietMs: 0, gatheredMs: 1000 }),
    'look again in 300 ms: indexing waits for the upload to pause',
  );
});

test('what stays below the threshold beside rows with graphs is indexed after 5 quiet seconds, or after a minute of writes', () => {
  const rest = (rows: number, scene: Scene = {}, others = [segment(1, 30_000)]) => plan([...others, active(2, rows)], scene);
  assert.equal(rest(7000), 'indexing: 2 to one segment with a graph');
  assert.equal(rest(2000), 'indexing: 2 to one segment with a graph');
  assert.equal(rest(7500), 'indexing: 1 + 2 to one segment with a graph', 'the other one is four times as large');
  assert.equal(rest(9000, {}, []), 'nothing to do', 'no rows have a graph');
  const quietMs = 5000;
  assert.equal(rest(2000, { quietMs }), 'indexing: 2 to one segment with a graph');
  assert.equal(rest(1999, { quietMs }), 'look again in 1311 ms', 'they are few');
  assert.equal(
    rest(2001, { quietMs, optimizers: { indexing_threshold: 16_016 } }),
    'look again in 1311 ms',
    'they are less than an eighth of the threshold',
  );
  assert.equal(rest(9000, { optimizers: { indexing_threshold: 0 } }), 'nothing to do');
  assert.equal(rest(9000, { running: [1] }), 'nothing to do');
  assert.equal(rest(9000, { quietMs: 4000 }), 'look again in 1000 ms');
  assert.equal(rest(9000, { quietMs: 0, gatheredMs: 59_000 }), 'look again in 1000 ms');
  assert.equal(rest(7000, { quietMs: 0, gatheredMs: 60_000 }), 'indexing: 2 to one segment with a graph');
  // Beyond the threshold it is an upload, which waits for its pause.
  assert.equal(rest(30_000, { quietMs: 0, gatheredMs: 9000 }), 'look again in 1000 ms: indexing waits for the upload to pause');
});

test('in a long pause rows without a graph join a segment of up to a thousand times their size', () => {
  const rest = (rows: number, scene: Scene = {}) => plan([segment(1, 20_000), segment(2, 400_000), active(3, rows)], scene);
  assert.equal(rest(20), 'merge: 1 + 3 to one segment with a graph');
  assert.equal(plan([segment(1, 20_000), active(3, 19)]), 'nothing to do');
  assert.equal(rest(1000, { quietMs: 5000 }), 'look again in 861 ms', 'one second for 25 MB');
  assert.equal(rest(1000, { quietMs: 5861 }), 'merge: 1 + 3 to one segment with a graph');
  const named = { default_segment_number: 4 };
  assert.equal(rest(1000, { optimizers: named }), 'merge: 1 + 3 to one segment with a graph');
  assert.equal(rest(1000, { optimizers: { max_segment_size: 20_500 } }), 'nothing to do');
  assert.equal(rest(1000, { optimizers: { indexing_threshold: 0 } }), 'nothing to do');
  assert.equal(rest(1000, { running: [2] }), 'nothing to do');
  assert.equal(plan([active(1, 20)]), 'nothing to do', 'no rows have a graph');
});

test('in a long pause sealed segments become one, unless the collection names their number', () => {
  const sealed = (rows: number, scene: Scene = {}) => plan([segment(1, 10_000), segment(2, rows)], scene);
  assert.equal(sealed(160_000), 'merge: 1 + 2 to one segment with a graph');
  assert.equal(sealed(160_001), 'nothing to do', 'it is more than sixteen times as large');
  assert.equal(sealed(15_000, { quietMs: 6000 }), 'look again in 24 ms', 'one second for 25 MB');
  assert.equal(sealed(15_000, { optimizers: { default_segment_number: 2 } }), 'nothing to do');
  assert.equal(sealed(15_000, { optimizers: { max_segment_size: 20_000 } }), 'nothing to do');
  assert.equal(sealed(15_000, { tooLarge: { segments: [1, 2], results: 1 } }), 'nothing to do', 'they did not fit');
  assert.equal(
    plan([segment(1, 100_000), segment(2, 10_000), active(3, 50)]),
    'merge: 1 + 2 + 3 to one segment with a graph',
    'with the rows that have no graph',
  );
  assert.equal(plan([segment(1, 100_000), segment(2, 10_000), active(3, 5)]), 'merge: 1 + 2 to one segment with a graph');
});

test('a sealed segment without a graph that is too small to be joined does not keep the others apart', () => {
  assert.equal(plan([segment(1, 3000), plain(2, 1), segment(3, 17_000)]), 'merge: 1 + 3 to one segment with a graph');
});

test('indexing folds in sealed segments of its size, and leaves large ones', () => {
  assert.equal(plan([segment(1, 30_000), active(2, 15_000)]), 'indexing: 1 + 2 to one segment with a graph');
  assert.equal(plan([segment(1, 30_001), active(2, 15_000)]), 'indexing: 2 to one segment with a graph');
  assert.equal(plan([segment(1, 80_000), segment(2, 25_000), active(3, 15_000)]), 'indexing: 1 + 2 + 3 to one segment with a graph');
  assert.equal(plan([segment(1, 90_000), segment(2, 25_000), active(3, 15_000)]), 'indexing: 2 + 3 to one segment with a graph');
});

test('sealed rows without a graph are indexed when the threshold comes down to them', () => {
  assert.equal(plan([plain(1, 20_000), active(2, 10)], { optimizers: { indexing_threshold: 0 } }), 'nothing to do');
  assert.equal(plan([plain(1, 20_000), active(2, 10)]), 'indexing: 1 + 2 to one segment with a graph');
});

test('a graph becomes lists on disk, and lists a graph, when the configuration changes, once', () => {
  const onDisk: VectorsConfig = { size: DIM, distance: 'Cosine', on_disk: true };
  const listed = segment(1, 30_000, { graphs: [{ name: '', m: 0, efConstruct: 0, inLists: true }] });
  const reindex = 'reindex: 1 to one segment with a graph';
  assert.equal(plan([segment(1, 30_000)], { vectors: onDisk, hnsw: { on_disk: true } }), reindex);
  assert.equal(plan([listed], { vectors: onDisk, hnsw: { on_disk: true } }), 'nothing to do');
  assert.equal(plan([listed], { vectors: onDisk }), reindex);
  assert.equal(plan([segment(1, 30_000)], { hnsw: { on_disk: true } }), 'nothing to do');
  const worn = { ...listed, damagedFiles: ['lists.0'] };
  assert.equal(plan([worn], { vectors: onDisk, hnsw: { on_disk: true } }), 'repair: 1 to one segment with a graph');
});

test('no result exceeds max_segment_size, and a source beyond it is built alone, into several segments', () => {
  const optimizers = { max_segment_size: 50_000 };
  assert.equal(plan([full(1, 30_000), full(2, 30_000)], { optimizers }), 'indexing: 1 to one segment with a graph');
  assert.equal(plan([full(1, 60_000)], { optimizers }), 'indexing: 1 to 2 segments with a graph');
  assert.equal(plan([full(1, 160_000)], { optimizers }), 'indexing: 1 to 4 segments with a graph');
  assert.equal(plan([segment(1, 30_000), active(2, 25_000)], { optimizers }), 'indexing: 2 to one segment with a graph');
});

test('no result exceeds what one memory holds, also when vectors are small', () => {
  const tiny = (id: number, rows: number) => active(id, rows, { vectorBytes: rows * 16, frozen: true });
  const scene: Scene = { optimizers: { indexing_threshold: 100 }, vectors: { size: 4, distance: 'Dot' } };
  assert.equal(plan([tiny(1, 10_000_000), tiny(2, 10_000_000)], scene), 'indexing: 1 to one segment with a graph');
});

const FLOATS = 128;
const large = (id: number, rows: number, facts: Partial<SegmentStats> = {}) =>
  segment(id, rows, { vectorBytes: rows * FLOATS * 4, ...facts });
const LARGE: VectorsConfig = { size: FLOATS, distance: 'Cosine' };

test('a segment that no longer fits in a memory is split when it is built again: with other links, more readers, another vector', () => {
  const grown = large(1, 2_929_000);
  assert.equal(plan([grown], { vectors: LARGE, readers: 2 }), 'nothing to do');
  assert.equal(plan([grown], { vectors: LARGE, readers: 46 }), 'nothing to do');
  const reindex = (m: number, readers: number) => plan([grown], { vectors: LARGE, readers, hnsw: { m } });
  assert.equal(reindex(20, 2), 'reindex: 1 to one segment with a graph');
  assert.equal(reindex(100, 2), 'reindex: 1 to 2 segments with a graph');
  assert.equal(reindex(64, 16), 'reindex: 1 to 2 segments with a graph');
  assert.equal(reindex(20, 46), 'reindex: 1 to 2 segments with a graph');
  assert.equal(reindex(20, 190), 'reindex: 1 to 4 segments with a graph');
  const worn = large(1, 2_929_000, { deleted: 800_000 });
  assert.equal(plan([worn], { vectors: LARGE, readers: 46 }), 'vacuum: 1 to one segment with a graph');
  assert.equal(plan([worn], { vectors: LARGE, readers: 64 }), 'vacuum: 1 to 2 segments with a graph');
  const two: VectorsConfig = { '': LARGE as VectorParams, other: { size: FLOATS, distance: 'Dot' } };
  assert.equal(plan([grown], { vectors: two, readers: 16 }), 'indexing: 1 to 2 segments with a graph');
});

test('the segments that a split makes are not merged again', () => {
  const scene: Scene = { vectors: LARGE, readers: 190, optimizers: { default_segment_number: 1 } };
  assert.equal(
    plan(
      [1, 2, 3, 4].map((id) => large(id, 732_500)),
      scene,
    ),
    'nothing to do',
  );
  const optimizers = { max_segment_size: 50_000, default_segment_number: 1 };
  assert.equal(
    plan(
      [1, 2, 3, 4].map((id) => segment(id, 40_000)),
      { optimizers },
    ),
    'nothing to do',
  );
});

test('a lower max_segment_size splits what is built anyway, and is no reason to build', () => {
  const optimizers = { max_segment_size: 30_000 };
  assert.equal(plan([segment(1, 100_000)], { optimizers }), 'nothing to do');
  assert.equal(plan([segment(1, 100_000)], { optimizers, hnsw: { m: 8 } }), 'reindex: 1 to 4 segments with a graph');
  assert.equal(plan([segment(1, 100_000, { deleted: 50_000 })], { optimizers }), 'vacuum: 1 to 2 segments with a graph');
});

test('no max_segment_size makes segments that are too small for a graph', () => {
  const optimizers = { max_segment_size: 10 };
  assert.equal(plan([segment(1, 35_000)], { optimizers, hnsw: { m: 8 } }), 'reindex: 1 to 3 segments with a graph');
  assert.equal(plan([full(1, 12_000)], { optimizers }), 'indexing: 1 to one segment with a graph');
});

test('a build that was too large all the same is tried with twice as many results, and no other one is', () => {
  const scene: Scene = { hnsw: { m: 8 }, tooLarge: { segments: [1], results: 1 } };
  assert.equal(plan([segment(1, 20_000)], scene), 'reindex: 1 to 2 segments with a graph');
  assert.equal(plan([segment(1, 20_000)], { ...scene, tooLarge: { segments: [1], results: 2 } }), 'reindex: 1 to 4 segments with a graph');
  assert.equal(plan([segment(2, 20_000)], scene), 'reindex: 2 to one segment with a graph');
});

test('the small first segment of a replica is not sealed alone, and goes with the next full one', () => {
  assert.equal(plan([full(1, 1000), active(2, 10)]), 'nothing to do');
  assert.equal(plan([full(1, 1000), full(2, 2000), active(3, 10)]), 'seal: 1 + 2 to one segment without a graph');
});

test('full segments are sealed without a graph where indexing is off or not due', () => {
  assert.equal(plan([full(1, 50_000), active(2, 10)], { optimizers: { indexing_threshold: 0 } }), 'seal: 1 to one segment without a graph');
  assert.equal(plan([full(1, 5000), active(2, 10)]), 'seal: 1 to one segment without a graph');
  assert.equal(
    plan([full(1, 50_000), active(2, 10)], { optimizers: { indexing_threshold: 0 }, quietMs: 100 }),
    'look again in 900 ms: seal waits for the upload to pause',
  );
  assert.equal(
    plan([full(1, 50_000), full(2, 50_000), full(3, 50_000), full(4, 50_000), active(5, 10)], {
      optimizers: { indexing_threshold: 0 },
      quietMs: 100,
    }),
    'seal: 1 + 2 + 3 + 4 to one segment without a graph',
  );
});

test('vacuum starts when the deleted share reaches its threshold in a segment that is large enough', () => {
  assert.equal(plan([segment(1, 20_000, { deleted: 3999 })]), 'nothing to do');
  assert.equal(plan([segment(1, 20_000, { deleted: 4000 })]), 'vacuum: 1 to one segment with a graph');
  assert.equal(plan([segment(1, 999, { deleted: 900 })]), 'nothing to do');
  assert.equal(plan([segment(1, 20_000, { deleted: 15_000 })]), 'vacuum: 1 to one segment without a graph');
  assert.equal(plan([active(1, 5000, { deleted: 4000 })], { quietMs: 400 }), 'look again in 600 ms: vacuum waits for the upload to pause');
  assert.equal(plan([active(1, 5000, { deleted: 4000 })]), 'vacuum: 1 to one segment without a graph');
});

test('merging combines the three smallest segments toward default_segment_number', () => {
  const four = [segment(1, 100_000), segment(2, 20_000), segment(3, 25_000), segment(4, 30_000)];
  assert.equal(plan(four), 'merge: 2 + 3 + 4 to one segment with a graph');
  assert.equal(plan(four, { optimizers: { default_segment_number: 4 } }), 'nothing to do');
  assert.equal(plan(four, { optimizers: { default_segment_number: 1 } }), 'merge: 1 + 2 + 3 + 4 to one segment with a graph');
  assert.equal(plan(four, { quietMs: 2000 }), 'look again in 3000 ms: merge waits for the upload to pause');
  assert.equal(plan(four, { optimizers: { max_segment_size: 60_000 } }), 'merge: 2 + 3 to one segment with a graph');
  assert.equal(plan(four, { optimizers: { max_segment_size: 40_000 } }), 'nothing to do');
});

test('where the collection names a number of segments, full appendable ones are merged toward it, too, within max_segment_size', () => {
  const small = [full(1, 100), full(2, 100), full(3, 100), full(4, 100), active(5, 20)];
  assert.equal(plan(small), 'nothing to do');
  assert.equal(plan(small, { optimizers: { default_segment_number: 2 } }), 'merge: 1 + 2 + 3 to one segment without a graph');
  assert.equal(plan(small, { optimizers: { default_segment_number: 1 } }), 'merge: 1 + 2 + 3 + 4 to one segment without a graph');
  assert.equal(plan(small, { optimizers: { default_segment_number: 2, max_segment_size: 200 } }), 'nothing to do');
  const built = [segment(7, 30_000), segment(8, 30_000)];
  assert.equal(plan([...built, full(1, 20)], { optimizers: { default_segment_number: 2 } }), 'nothing to do');
  assert.equal(
    plan([...built, ...small], { optimizers: { default_segment_number: 2 } }),
    'merge: 1 + 2 + 3 + 4 to one segment without a graph',
  );
  assert.equal(plan([...small, full(6, 50, { deferred: true })], { optimizers: { default_segment_number: 4 } }), 'nothing to do');
});

test('where the collection names a number of segments, indexing makes as many, none too small for a graph', () => {
  const optimizers = { default_segment_number: 3 };
  assert.equal(plan([full(1, 90_000)], { optimizers }), 'indexing: 1 to 3 segments with a graph');
  assert.equal(plan([full(1, 25_000)], { optimizers }), 'indexing: 1 to 2 segments with a graph');
  assert.equal(
    plan([segment(1, 100_000), segment(2, 100_000), full(3, 30_000)], { optimizers }),
    'indexing: 3 to one segment with a graph',
  );
  assert.equal(
    plan([segment(1, 40_000), segment(2, 40_000), full(3, 30_000)], { optimizers }),
    'indexing: 1 + 2 + 3 to 3 segments with a graph',
  );
  assert.equal(plan([segment(1, 90_000, { deleted: 30_000 })], { optimizers }), 'vacuum: 1 to one segment with a graph');
});

test('merging leaves a segment over four times the others alone, until the pause is long', () => {
  const three = (rows: number) => plan([segment(1, rows), segment(2, 20_000), segment(3, 25_000)], { quietMs: 5000 });
  assert.equal(three(180_001), 'look again in 9217 ms');
  assert.equal(three(180_000), 'merge: 1 + 2 + 3 to one segment with a graph');
});

test('a missing field index is built at once, also while writes or another build run', () => {
  const lacking = segment(1, 20_000, { missingFields: ['city', 'age'] });
  assert.equal(plan([lacking, active(2, 20_000)], { quietMs: 0 }), 'fieldIndex: city, age of segment 1');
  assert.equal(plan([lacking, full(2, 20_000)], { running: [2] }), 'fieldIndex: city, age of segment 1');
  assert.equal(plan([lacking], { running: [1] }), 'nothing to do');
  assert.equal(plan([active(1, 5, { missingFields: ['city'] })]), 'nothing to do');
});

test('a graph that was built with other settings is built again, smallest segment first, unless indexing is off', () => {
  const made = (m: number, efConstruct: number) => ({ graphs: [{ name: '', m, efConstruct }] });
  assert.equal(plan([segment(1, 20_000, made(16, 100))]), 'nothing to do');
  assert.equal(plan([segment(1, 20_000, made(8, 100))], { quietMs: 0 }), 'reindex: 1 to one segment with a graph');
  assert.equal(plan([segment(1, 30_000, made(16, 99)), segment(2, 20_000, made(0, 100))]), 'reindex: 2 to one segment with a graph');
  assert.equal(plan([segment(1, 20_000, made(8, 100)), segment(2, 90_000)], { running: [2] }), 'nothing to do');
  assert.equal(plan([segment(1, 20_000, made(8, 100))], { optimizers: { indexing_threshold: 0 } }), 'nothing to do');
});

test('sub-graphs are built again when their setting changes or a field is indexed, and not when an index goes', () => {
  const fields: ReplicaStats['fields'] = new Map([
    ['n', { type: 'integer' }],
    ['off', { type: 'uuid', params: { enable_hnsw: false } }],
    ['price', { type: 'float' }],
    ['who', { type: 'keyword', params: { is_tenant: true } }],
  ]);
  const setting: SubgraphSetting = { m: 8, efConstruct: 100, rowsMin: 10_000, fields: ['keyword tenant who', 'integer n'] };
  const made = (subgraphs?: SubgraphSetting, m = 16) => segment(1, 20_000, { graphs: [{ name: '', m, efConstruct: 100, subgraphs }] });
  const reindex = 'reindex: 1 to one segment with a graph';
  const hnsw = { payload_m: 8 };
  assert.equal(plan([made(setting)], { hnsw, fields }), 'nothing to do');
  assert.equal(plan([made(undefined)], { hnsw, fields }), reindex);
  assert.equal(plan([made(setting)], { fields }), reindex);
  assert.equal(plan([made(setting)], { hnsw: { payload_m: 0 }, fields }), reindex);
  assert.equal(plan([made(setting)], { hnsw: { payload_m: 9 }, fields }), reindex);
  assert.equal(plan([made(setting)], { hnsw: { payload_m: 8, full_scan_threshold: 20_000 }, fields }), reindex);
  assert.equal(plan([made(setting)], { hnsw, fields: new Map([...fields, ['b', { type: 'bool' }]]) }), reindex);
  assert.equal(plan([made(setting)], { hnsw, fields: new Map([...fields, ['who', { type: 'keyword' }]]) }), reindex);
  assert.equal(plan([made(setting)], { hnsw, fields: new Map([...fields].slice(0, 1)) }), 'nothing to do');
  assert.equal(plan([made(setting, 0)], { hnsw: { m: 0, payload_m: 8 }, fields }), 'nothing to do');
  assert.equal(plan([plain(1, 30_000)], { hnsw: { m: 0 }, fields }), 'nothing to do');
  assert.equal(plan([plain(1, 30_000)], { hnsw: { m: 0, payload_m: 8 }, fields }), 'indexing: 1 to one segment with a graph');
});

test('codes that another quantization made are made again, also when there is none any more, unless indexing is off', () => {
  const made = (setting: QuantizationConfig) => ({ quantized: [{ name: '', setting: JSON.stringify(setting) }] });
  const turbo: QuantizationConfig = { turbo: { bits: 'bits4' } };
  assert.equal(plan([segment(1, 20_000, made(turbo))], { quantization: { turbo: { always_ram: true } } }), 'nothing to do');
  assert.equal(plan([segment(1, 20_000)], { quantization: turbo }), 'reindex: 1 to one segment with a graph');
  assert.equal(plan([segment(1, 20_000, made(turbo))], { quantization: { binary: {} } }), 'reindex: 1 to one segment with a graph');
  assert.equal(plan([segment(1, 20_000, made(turbo))]), 'reindex: 1 to one segment with a graph');
  assert.equal(plan([active(1, 5000)], { quantization: turbo }), 'nothing to do');
  assert.equal(plan([segment(1, 20_000)], { quantization: turbo, optimizers: { indexing_threshold: 0 } }), 'nothing to do');
});

test('a damaged graph or codes are built again, a damaged field index counts as missing', () => {
  assert.equal(
    plan([segment(1, 20_000, { graphs: [], indexedVectors: 0, damagedFiles: ['graph.0'] })]),
    'repair: 1 to one segment with a graph',
  );
  for (const name of ['codes.0', 'sums.0'])
    assert.equal(plan([segment(1, 20_000, { damagedFiles: [name] })], { quietMs: 0 }), 'repair: 1 to one segment with a graph');
  assert.equal(plan([segment(1, 20_000, { damagedFiles: ['sparse.1'] })], { quietMs: 0 }), 'repair: 1 to one segment with a graph');
  assert.equal(plan([segment(1, 20_000, { damagedFiles: ['index.city'], missingFields: ['city'] })]), 'fieldIndex: city of segment 1');
});

test('sources of a running build are left alone, and a second build starts only for an upload that outgrows its bound', () => {
  assert.equal(plan([full(1, 50_000), active(2, 20_000)], { running: [1] }), 'nothing to do');
  assert.equal(plan([full(1, 50_000, { building: true }), active(2, 320_000)]), 'indexing: 2 to one segment with a graph');
});

test('uploads in steps with pauses build each point a logarithmic number of times', () => {
  for (const step of [12_000, 4000]) builtInSteps(step);
});

/** Uploads of so many rows, each once the one before has been indexed. */
function builtInSteps(step: number): void {
  let segments: SegmentStats[] = [segment(1000, 12_000)];
  let built = 0;
  let most = 0;
  for (let i = 1; i <= 128; i++) {
    segments.push(active(i, step));
    const taken = /: ([\d +]+) to/.exec(plan(segments, { quietMs: 5000 }))?.[1];
    if (taken === undefined) continue;
    const sources = taken.split(' + ').map(Number);
    const rows = segments.filter(({ id }) => sources.includes(id)).reduce((total, source) => total + source.rows, 0);
    segments = segments.filter(({ id }) => !sources.includes(id)).concat(segment(1000 + i, rows));
    built += rows;
    most = Math.max(most, segments.length);
  }
  assert.ok(built <= 128 * step * 8, `${built / step} steps built for 128`);
  assert.ok(most <= 7, `${most} segments`);
}

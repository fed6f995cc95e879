/**
 * The benchmark: a node as it ships, on real and on made vectors, next to usearch in one process on the same ones.
 *
 *     npm run bench -- --dataset mnist|synthetic|sample|all --quick --efs 16,64 --connections 1,4 --seconds 2 --out results.json
 *
 * What is counted: CPU of the node's process tree from /proc, never that of the load client; recall against exact search
 * over the same rows; latency as the client sees it.
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeEnvironment, NO_PYTHON, systemPython } from '../clients/python-environment.js';
import { type AccessChapter, accessMarkdown } from './access/report.js';
import { measureAccess } from './access/run.js';
import { type ApiReport, apiMarkdown } from './api/report.js';
import { measureApi } from './api/run.js';
import { clusterMarkdown } from './cluster/report.js';
import { measureCluster } from './cluster/run.js';
import { type CollectionsChapter, collectionsMarkdown } from './collections/report.js';
import { measureCollections } from './collections/run.js';
import { type Dataset, loadMnist, loadSample, makeSynthetic } from './common/dataset.js';
import { limitGigabytes, machine } from './common/measure.js';
import { profileSummary } from './common/profile.js';
import { table } from './common/table.js';
import { type EngineChapter, engineMarkdown } from './engine/report.js';
import { measureEngine } from './engine/run.js';
import { type GraphsChapter, graphsMarkdown } from './graphs/report.js';
import { measureGraphs, setApart, setOf } from './graphs/run.js';
import { type LargeChapter, largeMarkdown } from './large/report.js';
import { measureLarge } from './large/run.js';
import { type LimitsChapter, limitsMarkdown } from './limits/report.js';
import { measureLimits } from './limits/run.js';
import { markdown, writeChapter } from './node/report.js';
import { type BenchSettings, measure } from './node/run.js';
import { type PeersChapter, peersMarkdown } from './peers/report.js';
import { measurePeers } from './peers/run.js';
import { replicationMarkdown } from './replication/report.js';
import { measureReplication, REPLICATION_PARTS, type ReplicationPart } from './replication/run.js';
import { type RequestsChapter, requestsMarkdown } from './requests/report.js';
import { measureRequests } from './requests/run.js';
import { type SnapshotsChapter, snapshotsMarkdown } from './snapshots/report.js';
import { measureSnapshots } from './snapshots/run.js';
import { type StartChapter, startMarkdown } from './start/report.js';
import { measureStart } from './start/run.js';
import { type StreamChapter, streamMarkdown } from './stream/report.js';
import { measureStream } from './stream/run.js';
import { type BesideRow, measureBeside } from './writes/run.js';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const DEFAULT_DATA = join(ROOT, '..', 'shared', 'data');
const SEED_DEFAULT = 20_000;
/** By then a node has given back what only its start needed. */
const IDLE_AFTER_START_MS = 15_000;

const HELP = `npm run bench -- [options]
  --dataset NAME     mnist, synthetic, sample (4,000 digits that come with the project) or all (mnist and synthetic)
  --data FOLDER      where the files of MNIST are (also TROUPE_BENCH_DATA); default: ../shared/data
  --count N          rows of the data set at most
  --efs LIST         values of hnsw_ef, default 16,32,64,128,256; of --engine also 10
  --connections LIST default 1,4,16
  --seconds S        length of each measurement, default 3
  --api              the other parts of the API instead: gRPC, quantization, sparse, multivectors, hybrid, facet, scroll, groups
  --requests         the fixed cost of small requests instead: REST and gRPC, cold and warm, per thread, and uploads
  --start            a start instead: until ready and idle memory without data, until ready and the first requests with data; also with --dataset mnist
  --beside FOLDER    of --requests, --start and --replication's throughput: a built checkout whose server is measured in turn with this one; of
                     --stream and --engine: after this one
  --collections      --count (default 5,000) small collections on one node instead: made, stopped, started, searched, idle
  --large            one collection of --count (default 1,000,000) × --dim (default 128) points instead: built, searched, started again
  --tokens N         of --large: multivectors of so many vectors each
  --on-disk          of --large: vectors in lists on disk
  --stream           points at a steady pace, for --seconds (default 600), into a collection that is built and searched meanwhile instead
  --rate N           of --stream: points per second, default 2000
  --engine           time, CPU, memory and disk of MNIST, 50,000 × 256 and 200,000 × 128 instead: built, searched, started again
  --peers            libraries for vector search from Python's index of packages, called in processes of their own, next to this server instead
  --python FILE      of --peers: a Python with the packages of ops/bench/peers/requirements.txt; default: they are installed for the run
  --graphs           graphs made of pairs next to usearch's insertions instead, in this process: CPU, and what walks find and score
  --writes           writes of one collection beside long operations of another one with --count (default 300,000) points instead; printed only
  --access           what keys, tokens, the audit log and TLS cost instead, for --count (default 5,000) points
  --limits           a collection asked at 20 times the rate that it allows, beside quiet reads of another one instead
  --snapshots        a snapshot of --count (default 1,000,000) points × 128 instead: made, downloaded, uploaded, restored, beside a light load
  --cluster          clusters on this machine instead: idle cost, changes of collections, lost leaders, nodes that join
  --replication      shards and replicas on three local nodes instead; see --part, --methods and --count
  --part LIST        of --replication: throughput, moves, resharding; default all
  --methods LIST     of transfers, default stream_records,snapshot,wal_delta
  --dashboard        how long one waits for the dashboard in a real Chromium instead: the first view, a map of 50,000 points; printed only
  --quick            fewer rows, two values of ef, short measurements; tables are printed, not kept
  --seed N           of payloads and synthetic vectors, default ${SEED_DEFAULT}
  --profile FOLDER   CPU profiles of the node's threads, with a summary
  --out FILE         results as JSON; default ops/bench/results/<dataset>.json`;

const { values: options } = parseArgs({
  options: {
    dataset: { type: 'string', default: 'all' },
    data: { type: 'string', default: process.env.TROUPE_BENCH_DATA ?? DEFAULT_DATA },
    count: { type: 'string' },
    efs: { type: 'string' },
    connections: { type: 'string' },
    seconds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    api: { type: 'boolean', default: false },
    requests: { type: 'boolean', default: false },
    start: { type: 'boolean', default: false },
    beside: { type: 'string' },
    collections: { type: 'boolean', default: false },
    large: { type: 'boolean', default: false },
    dim: { type: 'string', default: '128' },
    tokens: { type: 'string', default: '1' },
    'on-disk': { type: 'boolean', default: false },
    stream: { type: 'boolean', default: false },
    rate: { type: 'string', default: '2000' },
    engine: { type: 'boolean', default: false },
    graphs: { type: 'boolean', default: false },
    peers: { type: 'boolean', default: false },
    python: { type: 'string' },
    writes: { type: 'boolean', default: false },
    limits: { type: 'boolean', default: false },
    access: { type: 'boolean', default: false },
    snapshots: { type: 'boolean', default: false },
    cluster: { type: 'boolean', default: false },
    replication: { type: 'boolean', default: false },
    part: { type: 'string' },
    methods: { type: 'string', default: 'stream_records,snapshot,wal_delta' },
    seed: { type: 'string', default: String(SEED_DEFAULT) },
    profile: { type: 'string' },
    out: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  console.log(HELP);
  process.exit(0);
}

const seed = Number(options.seed);
/** The other checkout; null: there is none. */
const beside = options.beside === undefined ? null : resolve(options.beside);
const settings: BenchSettings = {
  efs: numbers(options.efs, options.quick ? [32, 128] : [16, 32, 64, 128, 256]),
  connections: numbers(options.connections, options.quick ? [1, 4] : [1, 4, 16]),
  seconds: Number(options.seconds ?? (options.quick ? 1 : 3)),
  limit: 10,
  seed,
  profileFolder: options.profile === undefined ? null : resolve(options.profile),
};
/** Of folders only their names: results are kept and shown elsewhere. */
const words = process.argv.slice(2).map((word) => (isAbsolute(word) ? basename(word) : word));
const command = `npm run bench -- ${words.join(' ')}`.trim();

if (options.api) {
  await benchApi();
  process.exit(0);
}
if (options.requests) {
  await benchRequests();
  process.exit(0);
}
if (options.start) {
  await benchStart();
  process.exit(0);
}
if (options.peers) {
  await benchPeers();
  process.exit(0);
}
if (options.graphs) {
  await benchGraphs();
  process.exit(0);
}
if (options.writes) {
  await benchWrites();
  process.exit(0);
}
if (options.large) {
  await benchLarge();
  process.exit(0);
}
if (options.stream) {
  await benchStream();
  process.exit(0);
}
if (options.engine) {
  await benchEngine();
  process.exit(0);
}
if (options.collections) {
  await benchCollections();
  process.exit(0);
}
if (options.access) {
  await benchAccess();
  process.exit(0);
}
if (options.limits) {
  await benchLimits();
  process.exit(0);
}
if (options.snapshots) {
  await benchSnapshots();
  process.exit(0);
}
if (options.cluster) {
  await benchCluster();
  process.exit(0);
}
if (options.replication) {
  await benchReplication();
  process.exit(0);
}

for (const dataset of datasets()) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const report = await measure(dataset, settings, folder, run());
    console.log(`\n${markdown(report)}`);
    const out = options.out ?? join(ROOT, 'ops', 'bench', 'results', `${dataset.name}.json`);
    if (!options.quick || options.out !== undefined) {
      mkdirSync(dirname(out), { recursive: true });
      writeFileSync(out, `${JSON.stringify(report, null, 2)}\n`);
      console.log(`results: ${out}`);
    }
    if (settings.profileFolder !== null) console.log(profileSummary(settings.profileFolder));
    if (!options.quick) writeChapter(join(ROOT, 'ops', 'bench', 'README.md'), report.dataset, markdown(report));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
process.exit(0);

async function benchApi(): Promise<void> {
  const rows = options.count === undefined ? (options.quick ? 10_000 : 60_000) : Number(options.count);
  const dataset = loadMnist(options.data, seed, rows) ?? sample(rows);
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const apiSettings = {
      seconds: settings.seconds,
      seed,
      texts: options.quick ? 10_000 : 100_000,
      multis: options.quick ? 2_000 : 10_000,
      floats: options.quick ? 5_000 : 20_000,
    };
    const measured = await measureApi(dataset, apiSettings, folder);
    const report: ApiReport = { dataset: 'api', description: dataset.description, ...run(), seed, rows: measured };
    console.log(`\n${apiMarkdown(report)}`);
    if (!options.quick) keep(report.dataset, report, apiMarkdown(report));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchRequests(): Promise<void> {
  const dim = 784;
  const count = options.count === undefined ? (options.quick ? 5000 : 20_000) : Number(options.count);
  const dataset = makeSynthetic(count, dim, 1000, seed);
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const measured = await measureRequests(
      dataset,
      {
        seconds: Number(options.seconds ?? (options.quick ? 0.3 : 0.7)),
        rounds: options.quick ? 3 : 7,
        connections: numbers(options.connections, [1, 4]),
        beside,
      },
      folder,
    );
    const chapter: RequestsChapter = {
      ...measured,
      ...run(),
      description: dataset.description,
      seed,
      besideName: beside === null ? null : commitOf(beside),
    };
    console.log(`\n${requestsMarkdown(chapter)}`);
    keep('requests', chapter, requestsMarkdown(chapter));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchStart(): Promise<void> {
  const count = Number(options.count ?? (options.quick ? 5000 : 60_000));
  const isMnist = options.dataset === 'mnist';
  const dataset = isMnist ? (loadMnist(options.data, seed, count) ?? sample(count)) : makeSynthetic(count, 784, 1000, seed);
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const idleMs = options.quick ? 1000 : IDLE_AFTER_START_MS;
    const sides = await measureStart(dataset, { rounds: options.quick ? 3 : 7, idleMs, beside }, folder);
    const chapter: StartChapter = {
      sides,
      idleMs,
      ...run(),
      description: dataset.description,
      seed,
      besideName: beside === null ? null : commitOf(beside),
    };
    console.log(`\n${startMarkdown(chapter)}`);
    keep(isMnist ? 'start-mnist' : 'start', chapter, startMarkdown(chapter));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchGraphs(): Promise<void> {
  const share = options.quick ? 0.1 : 1;
  const synthetic = (count: number, dim: number) => setOf(makeSynthetic(count * share, dim, 600, seed));
  const mnist = loadMnist(options.data, seed, 60_000 * share) ?? sample(60_000);
  const sets = [synthetic(20_000, 128), synthetic(200_000, 128), synthetic(50_000, 256), synthetic(30_000, 768), setOf(mnist)];
  const rows = await measureGraphs([...sets, setApart(40_000 * share, 256, 200, seed)]);
  const chapter: GraphsChapter = { ...run(), rows, seed };
  console.log(`\n${graphsMarkdown(chapter)}`);
  if (!options.quick) keep('graphs', chapter, graphsMarkdown(chapter));
}

async function benchWrites(): Promise<void> {
  const count = Number(options.count ?? (options.quick ? 50_000 : 300_000));
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const rows = await measureBeside({ count, idleMs: options.quick ? 3000 : 10_000, seed }, folder);
    const head = ['beside', 'writes', 'p50 ms', 'p99 ms', 'slowest ms', 'took ms'];
    console.log(`\n${table(head, rows.map(writesCells)).join('\n')}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function writesCells({ p50Ms, p99Ms, slowestMs, tookMs, what, writes }: BesideRow): string[] {
  return [what, String(writes), p50Ms.toFixed(1), p99Ms.toFixed(1), slowestMs.toFixed(1), tookMs === null ? '' : tookMs.toFixed(0)];
}

async function benchLimits(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const slices = { seconds: Number(options.seconds ?? (options.quick ? 1 : 3)), rounds: options.quick ? 1 : 7 };
    const rows = await measureLimits({ ...slices, seed }, folder);
    const chapter: LimitsChapter = { ...run(), rows, seed };
    console.log(`\n${limitsMarkdown(chapter)}`);
    keep('limits', chapter, limitsMarkdown(chapter));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchAccess(): Promise<void> {
  const dataset = makeSynthetic(Number(options.count ?? 5000), 128, 1000, seed);
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const slices = { requests: options.quick ? 300 : 1000, rounds: options.quick ? 3 : 11 };
    const rows = await measureAccess(dataset, slices, folder);
    const chapter: AccessChapter = { ...run(), rows, description: dataset.description, seed };
    console.log(`\n${accessMarkdown(chapter)}`);
    keep('access', chapter, accessMarkdown(chapter));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchCollections(): Promise<void> {
  const count = Number(options.count ?? (options.quick ? 300 : 5000));
  const searched = Math.min(100, count);
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const rows = await measureCollections({ count, searched, seconds: options.quick ? 3 : 10, seed }, folder);
    const chapter: CollectionsChapter = { ...run(), rows, count, searched, seed };
    console.log(`\n${collectionsMarkdown(chapter)}`);
    keep('collections', chapter, collectionsMarkdown(chapter));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchLarge(): Promise<void> {
  const count = Number(options.count ?? (options.quick ? 50_000 : 1_000_000));
  const dim = Number(options.dim);
  const tokens = Number(options.tokens);
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const large = { count, dim, tokens, seed, efs: settings.efs, onDisk: options['on-disk'], restMs: options.quick ? 3000 : 30_000 };
    const report = await measureLarge(large, folder, (line) => process.stderr.write(`${line}\n`));
    const chapter: LargeChapter = { ...run(), ...report, count, dim, tokens, seed, limitGigabytes: limitGigabytes() };
    console.log(`\n${largeMarkdown(chapter)}`);
    keep(
      `large-${count}x${tokens === 1 ? '' : `${tokens}x`}${dim}${options['on-disk'] ? '-on-disk' : ''}`,
      chapter,
      largeMarkdown(chapter),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchStream(): Promise<void> {
  const seconds = Number(options.seconds ?? (options.quick ? 60 : 600));
  const pointsPerSecond = Number(options.rate);
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const rest = options.quick ? { restMs: 3000, restSeconds: 10 } : { restMs: 30_000, restSeconds: 60 };
    const sides = await measureStream({ seconds, pointsPerSecond, seed, beside, ...rest }, folder, (line) =>
      process.stderr.write(`${line}\n`),
    );
    const besideName = beside === null ? null : commitOf(beside);
    const chapter: StreamChapter = { ...run(), sides, pointsPerSecond, seconds, seed, besideName };
    console.log(`\n${streamMarkdown(chapter)}`);
    keep('stream', chapter, streamMarkdown(chapter));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** MNIST, 50,000 × 256 and 200,000 × 128, or a quarter of each. */
function threeSets(): Dataset[] {
  const count = (all: number) => (options.quick ? all / 4 : all);
  const mnist = loadMnist(options.data, seed, count(60_000)) ?? sample(count(60_000));
  return [mnist, makeSynthetic(count(50_000), 256, 1000, seed), makeSynthetic(count(200_000), 128, 1000, seed)];
}

async function benchPeers(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const requirements = join(ROOT, 'ops', 'bench', 'peers', 'requirements.txt');
    const python = options.python ?? (await peersPython(folder, requirements));
    if (python === null) return;
    const peers = {
      efs: options.quick ? settings.efs : numbers(options.efs, [10, 16, 32, 64, 128, 256]),
      seconds: settings.seconds,
      restMs: options.quick ? 3000 : 40_000,
      python,
      program: join(ROOT, 'ops', 'bench', 'peers', 'peer.py'),
    };
    const figures = await measurePeers(threeSets(), peers, folder, (line) => process.stderr.write(`${line}\n`));
    const versions = readFileSync(requirements, 'utf8').trim().split('\n');
    const chapter: PeersChapter = {
      ...run(),
      figures,
      seed,
      restMs: peers.restMs,
      versions: versions.map((line) => line.replace('==', ' ')),
    };
    console.log(`\n${peersMarkdown(chapter)}`);
    keep('peers', chapter, peersMarkdown(chapter));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The Python of an environment with the packages, which is made; null: there is none, and it is told why. */
async function peersPython(folder: string, requirements: string): Promise<string | null> {
  const system = systemPython();
  if (system === null) {
    console.log(NO_PYTHON);
    return null;
  }
  const made = await makeEnvironment(system, folder, requirements);
  if (typeof made === 'string') return made;
  console.error(`the packages could not be installed: exit code ${made}`);
  process.exitCode = 1;
  return null;
}

async function benchEngine(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    // The first is the limit: what all of them find would be compared at different recalls.
    const efs = options.quick ? settings.efs : numbers(options.efs, [10, 16, 32, 64, 128, 256]);
    const engine = { efs, seconds: settings.seconds, restMs: options.quick ? 3000 : 40_000, beside };
    const figures = await measureEngine(threeSets(), engine, folder, (line) => process.stderr.write(`${line}\n`));
    const besideName = beside === null ? null : commitOf(beside);
    const chapter: EngineChapter = { ...run(), figures, seed, restMs: engine.restMs, besideName };
    console.log(`\n${engineMarkdown(chapter)}`);
    keep('engine', chapter, engineMarkdown(chapter));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchSnapshots(): Promise<void> {
  const count = Number(options.count ?? (options.quick ? 100_000 : 1_000_000));
  const dataset = makeSynthetic(count, 128, 500, seed);
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const { profileFolder } = settings;
  try {
    const measured = await measureSnapshots({
      dataset,
      folder,
      idleMs: options.quick ? 3000 : 10_000,
      nodeArguments: profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`],
    });
    const chapter: SnapshotsChapter = { ...measured, ...run(), description: dataset.description, seed };
    console.log(`\n${snapshotsMarkdown(chapter)}`);
    if (profileFolder !== null) console.log(profileSummary(profileFolder));
    else keep('snapshots', chapter, snapshotsMarkdown(chapter));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What every report says of its run. */
function run() {
  return { command, machine: machine(), date: new Date().toISOString().slice(0, 10) };
}

/** Writes a report to the results, and to its chapter. A quick run is kept only where `--out` says, and has no chapter. */
function keep(name: string, report: object, text: string): void {
  if (options.quick && options.out === undefined) return;
  writeFileSync(options.out ?? join(ROOT, 'ops', 'bench', 'results', `${name}.json`), `${JSON.stringify(report, null, 2)}\n`);
  if (!options.quick) writeChapter(join(ROOT, 'ops', 'bench', 'README.md'), name, text);
}

/** The commit that a checkout stands at; «the other one» where git cannot say. */
function commitOf(folder: string): string {
  const { stdout } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: folder, encoding: 'utf8' });
  return stdout?.trim() || 'the other one';
}

async function benchCluster(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    const [changes, losses, idleSeconds, collections] = options.quick ? [1000, 3, 5, 10] : [10_000, 10, 30, 30];
    const rows = await measureCluster({ changes, losses, idleSeconds, collections }, folder);
    const report = { ...run(), rows };
    console.log(`\n${clusterMarkdown(report)}`);
    if (!options.quick) keep('cluster', report, clusterMarkdown(report));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchReplication(): Promise<void> {
  const parts = options.part?.split(',') ?? REPLICATION_PARTS;
  const wrong = parts.find((part) => !(REPLICATION_PARTS as readonly string[]).includes(part));
  if (wrong !== undefined) {
    console.error(`unknown part «${wrong}»\n${HELP}`);
    process.exit(1);
  }
  const of = (full: number, quick: number): number => Number(options.count ?? (options.quick ? quick : full));
  const { profileFolder } = settings;
  const kept = !options.quick && profileFolder === null;
  const report = await measureReplication({
    parts: parts as ReplicationPart[],
    methods: options.methods.split(','),
    counts: { throughput: of(200_000, 30_000), moves: of(1_000_000, 100_000), resharding: of(200_000, 30_000) },
    seconds: Number(options.seconds ?? (options.quick ? 2 : 5)),
    seed,
    command,
    temporary: tmpdir(),
    nodeArguments: profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`],
    beside: beside === null ? null : { folder: beside, name: commitOf(beside) },
    resultsFile: options.out ?? (kept ? join(ROOT, 'ops', 'bench', 'results', 'replication.json') : null),
  });
  console.log(`\n${replicationMarkdown(report)}`);
  if (profileFolder !== null) console.log(profileSummary(profileFolder));
  if (kept) writeChapter(join(ROOT, 'ops', 'bench', 'README.md'), 'replication', replicationMarkdown(report));
}

function* datasets(): Generator<Dataset> {
  const wanted = options.dataset;
  if (!['mnist', 'synthetic', 'sample', 'all'].includes(wanted)) {
    console.error(`unknown data set «${wanted}»\n${HELP}`);
    process.exit(1);
  }
  const countMax = options.count === undefined ? Number.POSITIVE_INFINITY : Number(options.count);
  if (wanted === 'mnist' || wanted === 'all') {
    const mnist = loadMnist(options.data, seed, Math.min(countMax, options.quick ? 10_000 : Number.POSITIVE_INFINITY));
    if (mnist === undefined) {
      console.log(
        `No mnist-base-60000x784.u8.gz and mnist-query-1000x784.u8.gz in ${options.data}: taking the sample that comes with the project.`,
      );
    }
    yield mnist ?? sample(countMax);
  }
  if (wanted === 'sample') yield sample(countMax);
  if (wanted === 'synthetic' || wanted === 'all')
    yield makeSynthetic(Math.min(countMax, options.quick ? 30_000 : 200_000), 128, 1000, seed);
}

function sample(countMax: number): Dataset {
  return loadSample(join(ROOT, 'ops', 'demo', 'data'), seed, countMax);
}

function numbers(list: string | undefined, otherwise: number[]): number[] {
  return list === undefined ? otherwise : list.split(',').map(Number);
}

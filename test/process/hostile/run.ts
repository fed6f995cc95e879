/**
 * Random, broken and absurd requests on several connections against a real node that has the heap of a small container: it lives on, blames
 * itself for no request, and answers each within its timeout and a second.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { memory, peakMegabytes } from '../../../ops/bench/common/measure.js';
import { startNodeProcess } from '../../../ops/node-process.js';
import { type RandomNumbers, seededRandom } from '../../../ops/random.js';
import { type RestAnswer, RestClient } from '../../../ops/rest-client.js';
import { bytesOf, mutated } from '../fuzz/mutations.js';
import { FUZZED_COLLECTION, FUZZED_FIELDS, fuzzedPoints, sampleRequest } from '../fuzz/requests.js';
import { absurdRequest, DIM, POINTS } from './absurd.js';
import { Witness } from './witness.js';

export interface HostileOptions {
  readonly folder: string;
  readonly seed: number;
  readonly requests: number;
  readonly milliseconds: number;
  readonly connections: number;
  /** Of the container that the node believes to be in: the main thread's heap is half of it, as Node takes it, and the budget its usual share. */
  readonly memoryMb: number;
  /** One request of so many is absurd. */
  readonly absurdEvery: number;
}

export interface HostileReport {
  readonly requests: number;
  /** How many, by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Milliseconds of the slowest answer, by kind. */
  readonly slowestMs: Readonly<Record<string, number>>;
  /** How much later than its deadline the latest answer came. */
  readonly latestMs: number;
  /** The same less what an idle node took at that time, by kind; only kinds that were late. */
  readonly lateMs: Readonly<Record<string, number>>;
  /** How many answers were later than they may be, by that. */
  readonly lateAnswers: number;
  /** Milliseconds of the slowest answer of the idle node. */
  readonly idleMs: number;
  /** Memory that is no file's, when it was more than ever before, and the absurd requests that were under way. */
  readonly peaks: readonly string[];
  /** 0 where the system does not tell. */
  readonly peakRssMb: number;
  /** The most that was of no file. */
  readonly peakOwnMb: number;
  readonly violations: readonly string[];
  /** What the node has said of trouble, from the first on. */
  readonly warnings: readonly string[];
}

/** An answer may come so much later than the deadline. */
const GRACE_MS = 1000;
/** Of requests that do not say how long they have. */
const TIMEOUT_MS = 60_000;
const BATCH = 1000;
/** The node says so when it has no room or no turn for a request, or when its time is over. */
const OWN_STATUSES: ReadonlySet<number> = new Set([503, 507]);
const VIOLATIONS_MAX = 20;
const WARNINGS_MAX = 40;
/** So many small requests, and the collection that they change is made anew. */
const LIFE = 2000;
/** As `memoryBudget` and Node have it. */
const BUDGET_SHARE = 0.8;
const HEAP_SHARE = 0.5;
/** The option would bound the heaps of all threads alike; others than the main thread have their own bounds. */
const FREE_WORKERS = "data:text/javascript,process.getBuiltinModule('node:v8').setFlagsFromString('--max-old-space-size=0')";
const MEASURE_EVERY_MS = 100;
const PEAK_STEP_MB = 16;

interface Sample {
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  readonly body: Buffer | string | undefined;
  readonly timeoutMs: number;
}

export async function runHostile(options: HostileOptions): Promise<HostileReport> {
  const { connections, folder, memoryMb, milliseconds, requests, seed } = options;
  const random = seededRandom(seed);
  for (const name of ['node', 'idle']) mkdirSync(join(folder, name));
  const node = await startNodeProcess({
    folder: join(folder, 'node'),
    nodeArguments: [`--max-old-space-size=${Math.floor(memoryMb * HEAP_SHARE)}`, '--import', FREE_WORKERS],
    environment: { SERVICE__STORAGE__PERFORMANCE__MEMORY_BUDGET_MB: String(Math.floor(memoryMb * BUDGET_SHARE)) },
  });
  const client = new RestClient(node.port, connections);
  const witness = await Witness.start(join(folder, 'idle'));
  const report = new Tally(witness);
  const measuring = setInterval(() => report.measured(ownMegabytes(node.pid)), MEASURE_EVERY_MS);
  let exit: string | null = null;
  void node.exited.then(({ code, signal }) => {
    exit = `the node has ended: code ${code}, signal ${signal}`;
  });
  const attack = async (): Promise<void> => {
    await makeLarge(client, random);
    const untilMs = performance.now() + milliseconds;
    let begun = 0;
    const ask = async (): Promise<void> => {
      while (begun < requests && performance.now() < untilMs && exit === null) {
        if (begun++ % LIFE === 0) await remake(client, random);
        await askOnce(client, sample(random, options.absurdEvery), report);
      }
    };
    await Promise.all(Array.from({ length: connections }, ask));
    if (exit === null) await lives(client, report, node.log());
  };
  try {
    await attack().catch((error: unknown) => report.violation(`the run broke off: ${String(error)}`));
    return report.done(Math.round(peakMegabytes(node.pid) ?? 0), exit, node.log());
  } finally {
    clearInterval(measuring);
    client.close();
    await witness.end();
    await node.end('SIGKILL');
  }
}

function sample(random: RandomNumbers, absurdEvery: number): Sample {
  if (random.integer(absurdEvery) === 0) {
    const request = absurdRequest(random);
    return { ...request, path: `/collections/large/${request.path}` };
  }
  const { body, method, path } = sampleRequest(random);
  const url = path.startsWith('//') ? path.slice(1) : `/collections/small${path === '' ? '' : `/${path}`}`;
  const bad = random.integer(6) === 0 ? body : mutated(body, random);
  return { kind: 'small', method, path: url, body: body === undefined ? undefined : bytesOf(bad, random), timeoutMs: TIMEOUT_MS };
}

async function askOnce(client: RestClient, { body, kind, method, path, timeoutMs }: Sample, report: Tally): Promise<void> {
  const startedMs = performance.now();
  const what = `${kind}: ${method} ${path} ${body?.length ?? 0} bytes ${String(body).slice(0, 200)}`;
  const done = report.begun(`${kind}, ${body?.length ?? 0} bytes`);
  try {
    const answer = await client.call(method, path, body);
    report.note(what, kind, answer, startedMs, timeoutMs);
  } catch (error) {
    report.violation(`${what}: ${String(error)}`);
  } finally {
    done();
  }
}

/** Resident memory that the system cannot take back: of no file. */
function ownMegabytes(pid: number): number {
  const { anonymous, shared } = memory(pid) ?? { anonymous: 0, shared: 0 };
  return anonymous + shared;
}

class Tally {
  private requests = 0;
  private readonly statuses: Record<string, number> = {};
  private readonly slowestMs: Record<string, number> = {};
  private readonly violations: string[] = [];
  private latestMs = Number.NEGATIVE_INFINITY;
  private readonly lateMs: Record<string, number> = {};
  private lateAnswers = 0;
  private readonly underWay = new Set<{ readonly what: string }>();
  private readonly peaks: string[] = [];
  private peakMb = 0;

  constructor(private readonly witness: Witness) {}

  /** A request is under way until the returned function is called. */
  begun(what: string): () => void {
    const one = { what };
    this.underWay.add(one);
    return () => this.underWay.delete(one);
  }

  measured(megabytes: number): void {
    if (megabytes < this.peakMb + PEAK_STEP_MB) return;
    this.peakMb = megabytes;
    const kinds = [...this.underWay].map(({ what }) => what).filter((what) => !what.startsWith('small'));
    this.peaks.push(`${Math.round(megabytes)} MB after ${this.requests} requests: ${kinds.join('; ')}`);
  }

  /** startedMs: of `performance.now()`. */
  note(what: string, kind: string, { status, text }: RestAnswer, startedMs: number, timeoutMs: number): void {
    const milliseconds = performance.now() - startedMs;
    this.requests++;
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    this.slowestMs[kind] = Math.max(this.slowestMs[kind] ?? 0, Math.round(milliseconds));
    this.latestMs = Math.max(this.latestMs, Math.round(milliseconds - timeoutMs));
    if (milliseconds > timeoutMs) {
      const idleMs = this.witness.slowestSince(startedMs);
      const lateMs = Math.round(milliseconds - timeoutMs - idleMs);
      this.lateMs[kind] = Math.max(this.lateMs[kind] ?? Number.NEGATIVE_INFINITY, lateMs);
      if (lateMs > GRACE_MS) {
        this.lateAnswers++;
        this.violation(`${what}: answered ${status} after ${Math.round(milliseconds)} ms (an idle node took ${Math.round(idleMs)} ms)`);
      }
    }
    if (status >= 500 && !OWN_STATUSES.has(status)) this.violation(`${what}: ${status} ${text.slice(0, 300)}`);
  }

  violation(text: string): void {
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push(text);
  }

  done(rssMb: number, exit: string | null, log: string): HostileReport {
    const { lateAnswers, lateMs, latestMs, peakMb, peaks, requests, slowestMs, statuses, violations, witness } = this;
    const late = { latestMs, lateMs, lateAnswers, idleMs: witness.slowestMs };
    const warnings = log.split('\n').filter((line) => /WARN|ERROR|Warning|FATAL/.test(line));
    const all = exit === null ? violations : [...violations, exit];
    return {
      requests,
      statuses,
      slowestMs,
      ...late,
      peaks,
      peakRssMb: rssMb,
      peakOwnMb: Math.round(peakMb),
      violations: all,
      warnings: warnings.slice(0, WARNINGS_MAX),
    };
  }
}

async function makeLarge(client: RestClient, random: RandomNumbers): Promise<void> {
  await client.result('PUT', '/collections/large', { vectors: { size: DIM, distance: 'Cosine' } });
  for (const [field_name, field_schema] of [
    ['n', 'integer'],
    ['tag', 'keyword'],
  ]) {
    await client.result('PUT', '/collections/large/index?wait=true', { field_name, field_schema });
  }
  for (let from = 0; from < POINTS; from += BATCH) {
    const points = Array.from({ length: BATCH }, (_, at) => ({
      id: from + at,
      vector: Array.from({ length: DIM }, () => random.integer(1000) / 1000),
      payload: { n: random.integer(5000), tag: `tag-${random.integer(5000)}` },
    }));
    await client.result('PUT', '/collections/large/points?wait=true', { points });
  }
}

async function remake(client: RestClient, random: RandomNumbers): Promise<void> {
  await client.call('DELETE', '/collections/small');
  await client.call('PUT', '/collections/small', FUZZED_COLLECTION);
  for (const [field_name, field_schema] of Object.entries(FUZZED_FIELDS))
    await client.call('PUT', '/collections/small/index?wait=true', { field_name, field_schema });
  await client.call('PUT', '/collections/small/points?wait=true', { points: fuzzedPoints(random) });
}

async function lives(client: RestClient, report: Tally, log: string): Promise<void> {
  const { count } = await client.result<{ count: number }>('POST', '/collections/large/points/count', { exact: true });
  if (count !== POINTS) report.violation(`the collection has ${count} points`);
  const line = /^.*(?:unexpected error|TroupeReader|TroupeGather|uncaught).*$/im.exec(log);
  if (line !== null) report.violation(`the log says: ${line[0].slice(0, 500)}`);
}

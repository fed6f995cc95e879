/**
 * Random, broken and absurd requests on several connections against a real node that has the heap of a small container: it lives on, blames
 * itself for no request, answers each within its timeout and a second, and takes no more memory than the container has. Memory is what the
 * kernel cannot take back: anonymous and shared. Pages of files (the program, LMDB's) it drops when the container has no room for them.
 *
 * Client and node share the machine, so what the client and others take is taken off: the time until the system had all of a request (as the node
 * counts it: a client that sends slowly has that time for itself, see http/README.md), and then what an idle node takes, or what a thread of the node
 * waited for a CPU that other processes had, whichever is more.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { memoryAlone, peakMegabytes } from '../../../ops/bench/common/measure.js';
import { startNodeProcess } from '../../../ops/node-process.js';
import { type RandomNumbers, seededRandom } from '../../../ops/random.js';
import { RestClient } from '../../../ops/rest-client.js';
import { bytesOf, mutated } from '../fuzz/mutations.js';
import { FUZZED_COLLECTION, FUZZED_FIELDS, fuzzedPoints, sampleRequest } from '../fuzz/requests.js';
import { absurdChoice, DIM, POINTS } from './absurd.js';
import { AbsurdRequests } from './body-thread.js';
import { type BurstAnswer, BurstConnection } from './burst-connection.js';
import { CpuWait } from './cpu-wait.js';
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
  /** One of so many others is of any operation; the rest are reads, which are sent several at a time. */
  readonly changesEvery: number;
  /** Gets a line a minute on how far the run is. */
  readonly tell: (line: string) => void;
}

export interface HostileReport {
  readonly requests: number;
  readonly absurdRequests: number;
  readonly seconds: number;
  readonly requestsPerSecond: number;
  /** How many, by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Milliseconds of the slowest answer, by kind. */
  readonly slowestMs: Readonly<Record<string, number>>;
  /** How much later than its deadline the latest answer came. */
  readonly latestMs: number;
  /** The same less what was not the node's doing, by kind; only kinds that were late. */
  readonly lateMs: Readonly<Record<string, number>>;
  /** How many answers were later than they may be, by that. */
  readonly lateAnswers: number;
  /** Answers that were later than they may be by the clock alone, and where their time went. */
  readonly lateByClock: readonly string[];
  /** Milliseconds until the system had all bytes of the request that took longest to be sent. */
  readonly slowestSendingMs: number;
  /** Milliseconds of the slowest answer of the idle node. */
  readonly idleMs: number;
  /** Which share of the CPU time of the run processes had that do not belong to it. */
  readonly shareOfOthers: number;
  /** Memory that is no file's, when it was more than ever before, and the absurd requests that were under way. */
  readonly peaks: readonly string[];
  /** MB: 2^20 bytes, as containers count. 0 where the system does not tell. */
  readonly peakRssMb: number;
  /** The most that was of no file, and the most that was of files. */
  readonly peakOwnMb: number;
  readonly peakFileMb: number;
  /** Threads that ended and were replaced, as the node told of them: which, when and why. */
  readonly lostThreads: readonly string[];
  readonly violations: readonly string[];
  /** What the node has said of trouble, from the first on; slow requests and names that it does not know are no trouble here. */
  readonly warnings: readonly string[];
}

/** An answer may come so much later than the deadline. */
const GRACE_MS = 1000;
/** Of requests that do not say how long they have. */
const TIMEOUT_MS = 60_000;
const BATCH = 1000;
/** Reads that are sent at once. */
const BURST = 32;
/** The node says so when it has no room or no turn for a request, or when its time is over. */
const OWN_STATUSES: ReadonlySet<number> = new Set([503, 507]);
const VIOLATIONS_MAX = 20;
const WARNINGS_MAX = 40;
/** So many requests that may change it, and the small collection is made anew. */
const LIFE = 2000;
/** As `memoryBudget` and Node have it. */
const BUDGET_SHARE = 0.8;
const HEAP_SHARE = 0.5;
/** The option would bound the heaps of all threads alike; others than the main thread have their own bounds. */
const FREE_WORKERS = "data:text/javascript,process.getBuiltinModule('node:v8').setFlagsFromString('--max-old-space-size=0')";
/** Of the log when a thread is lost. */
const LOST_THREAD = /an engine worker (?:was lost|does not answer)/;
const TROUBLE = /WARN|ERROR|Warning|FATAL/;
const EXPECTED = /a request took long|requests have fields that are not known/;
const LATE_BY_CLOCK_MAX = 100;
/** `memoryAlone` and `peakMegabytes` count in 10^6 bytes. */
const MEBIBYTES = 1e6 / 2 ** 20;
const TELL_EVERY_MS = 60_000;
const MEASURE_EVERY_MS = 100;
const PEAK_STEP_MB = 16;

interface Sample {
  readonly kind: string;
  /** It may be sent with others, before they are answered. */
  readonly isPlain: boolean;
  readonly method: string;
  readonly path: string;
  readonly body: Buffer | undefined;
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
  const cpuWait = new CpuWait(node.pid, [witness.pid]);
  const report = new Tally(witness, cpuWait);
  const absurd = new AbsurdRequests();
  const measuring = setInterval(() => {
    report.measured(node.pid);
    cpuWait.look();
  }, MEASURE_EVERY_MS);
  const telling = setInterval(() => options.tell(report.progress()), TELL_EVERY_MS);
  let exit: string | null = null;
  void node.exited.then(({ code, signal }) => {
    exit = `the node has ended: code ${code}, signal ${signal}`;
  });
  const attack = async (): Promise<void> => {
    await makeLarge(client, random);
    const untilMs = performance.now() + milliseconds;
    let begun = 0;
    let changes = 0;
    const askAll = async (): Promise<void> => {
      const connection = new BurstConnection(node.port);
      while (begun < requests && performance.now() < untilMs && exit === null) {
        const plain: Sample[] = [];
        let other: Promise<Sample> | Sample | null = null;
        while (plain.length < BURST && other === null && begun++ < requests) {
          const one = random.integer(options.absurdEvery) === 0 ? absurdSample(random, absurd) : sample(random, options);
          if ('isPlain' in one && one.isPlain) plain.push(one);
          else other = one;
        }
        await ask(connection, plain, report);
        if (other === null) continue;
        const one = await other;
        if (one.kind === 'small' && changes++ % LIFE === 0) await remake(client, random);
        await ask(connection, [one], report);
      }
      connection.close();
    };
    report.start();
    await Promise.all(Array.from({ length: connections }, askAll));
    if (exit === null) await lives(client, report, node.log());
    if (report.peakOwnMb > memoryMb)
      report.violation(`${Math.round(report.peakOwnMb)} MB, which a container of ${memoryMb} MB does not have`);
  };
  try {
    await attack().catch((error: unknown) => report.violation(`the run broke off: ${String(error)}`));
    return report.done(peakMegabytes(node.pid) ?? 0, exit, node.log());
  } finally {
    clearInterval(measuring);
    clearInterval(telling);
    client.close();
    await absurd.end();
    await witness.end();
    await node.end('SIGKILL');
  }
}

async function absurdSample(random: RandomNumbers, absurd: AbsurdRequests): Promise<Sample> {
  const request = await absurd.make(absurdChoice(random));
  return { ...request, isPlain: false, path: `/collections/large/${request.path}` };
}

function sample(random: RandomNumbers, { changesEvery }: HostileOptions): Sample {
  const isPlain = random.integer(changesEvery) > 0;
  let request = sampleRequest(random);
  while (isPlain && !READ.test(`${request.method} ${request.path}`)) request = sampleRequest(random);
  const { body, method, path } = request;
  const url = path.startsWith('//') ? path.slice(1) : `/collections/small${path === '' ? '' : `/${path}`}`;
  const bad = random.integer(6) === 0 ? body : mutated(body, random);
  return { kind: 'small', isPlain, method, path: url, body: body === undefined ? undefined : bytesOf(bad, random), timeoutMs: TIMEOUT_MS };
}

/** Of samples: a read of the collection, or of its points. */
const READ = /^(GET (points\/.*)?|POST (points(\/(scroll|count|query|search|recommend|discover)(\/.*)?)?|facet))$/;

/** All at once. */
async function ask(connection: BurstConnection, samples: readonly Sample[], report: Tally): Promise<void> {
  if (samples.length === 0) return;
  let answered = 0;
  const sending = new Sending();
  const done = samples.map(({ body, isPlain, kind }) => (isPlain ? null : report.begun(`${kind}, ${body?.length ?? 0} bytes`)));
  try {
    await connection.ask(samples, {
      sent: () => sending.end(),
      answered: (at, answer) => {
        answered++;
        const one = samples[at] as Sample;
        report.note(() => wordsOf(one), one, answer, sending);
      },
    });
  } catch (error) {
    const next = samples[answered];
    report.violation(`${next === undefined ? '' : wordsOf(next)}: ${String(error)}`);
  }
  for (const each of done) each?.();
}

function wordsOf({ body, kind, method, path }: Sample): string {
  return `${kind}: ${method} ${path} ${body?.length ?? 0} bytes ${(body ?? '').slice(0, 200).toString()}`;
}

/** When requests were sent, and how long this program was busy with this and other things until the system had them. */
class Sending {
  /** Of `performance.now()`. */
  readonly startedMs = performance.now();
  private readonly activeMs = activeMs();
  private done: { readonly tookMs: number; readonly busyMs: number } | null = null;

  end(): void {
    this.done ??= this.sofar();
  }

  /** Until now, where the system has not taken everything yet. */
  get took(): { readonly tookMs: number; readonly busyMs: number } {
    return this.done ?? this.sofar();
  }

  private sofar(): { readonly tookMs: number; readonly busyMs: number } {
    return { tookMs: performance.now() - this.startedMs, busyMs: activeMs() - this.activeMs };
  }
}

/** Milliseconds that this thread has not been idle. */
function activeMs(): number {
  return performance.eventLoopUtilization().active;
}

class Tally {
  private requests = 0;
  private readonly statuses: Record<string, number> = {};
  private readonly slowestMs: Record<string, number> = {};
  private readonly violations: string[] = [];
  private latestMs = Number.NEGATIVE_INFINITY;
  private readonly lateMs: Record<string, number> = {};
  private lateAnswers = 0;
  private slowestSendingMs = 0;
  private readonly lateByClock: string[] = [];
  private readonly underWay = new Set<{ readonly what: string }>();
  private readonly peaks: string[] = [];
  private absurdRequests = 0;
  private startedMs = 0;
  private notedMb = 0;
  private peakFileMb = 0;
  peakOwnMb = 0;

  constructor(
    private readonly witness: Witness,
    private readonly cpuWait: CpuWait,
  ) {}

  start(): void {
    this.startedMs = performance.now();
  }

  /** A request is under way until the returned function is called. */
  begun(what: string): () => void {
    const one = { what };
    this.underWay.add(one);
    return () => this.underWay.delete(one);
  }

  /** Looks at the resident memory of a process: what the system cannot take back, and what is of files. */
  measured(pid: number): void {
    const { anonymous, file, shared } = memoryAlone(pid);
    const megabytes = (anonymous + shared) * MEBIBYTES;
    this.peakOwnMb = Math.max(this.peakOwnMb, megabytes);
    this.peakFileMb = Math.max(this.peakFileMb, file * MEBIBYTES);
    if (megabytes < this.notedMb + PEAK_STEP_MB) return;
    this.notedMb = megabytes;
    const kinds = [...this.underWay].map(({ what }) => what).filter((what) => !what.startsWith('small'));
    this.peaks.push(`${Math.round(megabytes)} MB after ${this.requests} requests: ${kinds.join('; ')}`);
  }

  note(what: () => string, { kind, timeoutMs }: Sample, { nodeMs, status, text }: BurstAnswer, sending: Sending): void {
    const { startedMs } = sending;
    const milliseconds = performance.now() - startedMs;
    this.requests++;
    if (kind !== 'small') this.absurdRequests++;
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    this.slowestMs[kind] = Math.max(this.slowestMs[kind] ?? 0, Math.round(milliseconds));
    this.latestMs = Math.max(this.latestMs, Math.round(milliseconds - timeoutMs));
    this.slowestSendingMs = Math.max(this.slowestSendingMs, Math.round(sending.took.tookMs));
    if (milliseconds > timeoutMs) this.noteLate(what, kind, status, milliseconds, timeoutMs, nodeMs, sending);
    if (status >= 500 && !OWN_STATUSES.has(status)) this.violation(`${what()}: ${status} ${text.slice(0, 300)}`);
  }

  private noteLate(
    what: () => string,
    kind: string,
    status: number,
    milliseconds: number,
    timeoutMs: number,
    nodeMs: number | null,
    { startedMs, took }: Sending,
  ): void {
    const idleMs = this.witness.slowestSince(startedMs + took.tookMs);
    const waitMs = this.cpuWait.sinceMs(startedMs + took.tookMs);
    const lateMs = Math.round(milliseconds - took.tookMs - timeoutMs - Math.max(idleMs, waitMs));
    this.lateMs[kind] = Math.max(this.lateMs[kind] ?? Number.NEGATIVE_INFINITY, lateMs);
    if (milliseconds <= timeoutMs + GRACE_MS) return;
    const parts = `${Math.round(took.tookMs)} ms until it was sent, ${Math.round(took.busyMs)} of them this program's own`;
    const others = `an idle node took ${Math.round(idleMs)} ms, others had the CPU for ${Math.round(waitMs)} ms, the node says ${nodeMs === null ? 'nothing' : `${Math.round(nodeMs)} ms`}`;
    const line = `${what()}: answered ${status} after ${Math.round(milliseconds)} ms (${parts}; ${others})`;
    if (this.lateByClock.length < LATE_BY_CLOCK_MAX) this.lateByClock.push(line);
    if (lateMs <= GRACE_MS) return;
    this.lateAnswers++;
    this.violation(line);
  }

  violation(text: string): void {
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push(text);
  }

  progress(): string {
    const seconds = Math.round((performance.now() - this.startedMs) / 1000);
    return `${seconds} s: ${this.requests} requests, ${this.lateAnswers} late, ${Math.round(this.peakOwnMb)} MB, ${this.violations.length} violations`;
  }

  done(rssMb: number, exit: string | null, log: string): HostileReport {
    const { absurdRequests, lateAnswers, lateByClock, lateMs, latestMs, peaks, requests, slowestMs, statuses, violations, witness } = this;
    const seconds = (performance.now() - this.startedMs) / 1000;
    const late = {
      latestMs,
      lateMs,
      lateAnswers,
      lateByClock,
      slowestSendingMs: this.slowestSendingMs,
      idleMs: witness.slowestMs,
      shareOfOthers: this.cpuWait.shareOfOthers(),
    };
    const lines = log.split('\n');
    const warnings = lines.filter((line) => TROUBLE.test(line) && !EXPECTED.test(line));
    const all = exit === null ? violations : [...violations, exit];
    return {
      requests,
      absurdRequests,
      seconds: Math.round(seconds),
      requestsPerSecond: Math.round(requests / seconds),
      statuses,
      slowestMs,
      ...late,
      peaks,
      peakRssMb: Math.round(rssMb * MEBIBYTES),
      peakOwnMb: Math.round(this.peakOwnMb),
      peakFileMb: Math.round(this.peakFileMb),
      lostThreads: lines.filter((line) => LOST_THREAD.test(line)),
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

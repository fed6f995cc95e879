/**
 * Runs in which calls of the kernel fail. A world (one node, or two that hold copies of each other) is prepared once. Each run takes a copy of
 * its folder, lets the n-th of each call of a kind fail in each thread of one node, and starts the world again without faults: then everything acknowledged
 * must be there, nothing half, and all must work, also after one more start.
 *
 * Starts are what runs cost. So several runs share them, in one folder: those of `work` a process, with a set of collections for each, and the start
 * that looks for the damage of a process that ended is the process of the next ones; with those of `start`, it leaves the work for the next run.
 * Where something is found, each run is made alone.
 */

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Exit } from '../../../ops/node-process.js';
import { certainCollections, probe, wrongData } from './check.js';
import { compileFailingCalls, FailingCalls, variablesFor } from './failing-calls.js';
import { type Counts, type FaultPlan, faultPlan, KINDS, type Kind, type Mode } from './kinds.js';
import { Model, newTally, PATIENT_WAIT_SEC, type Tally, Workload } from './workload.js';
import {
  becomesReady,
  commandOf,
  copyFolder,
  launchWorld,
  type Nodes,
  nodeFolder,
  startWorld,
  type World,
  type WorldNode,
  writeCommand,
  writeProgram,
} from './world.js';

/** `work`: calls of a node that runs fail, until it has ended. `start`: calls of a process from its first on, after a kill. */
export const PHASES = ['work', 'start'] as const;
export type Phase = (typeof PHASES)[number];

export const PLACES = ['one', 'first', 'second'] as const;
/** A node alone, or one of the two of a cluster. */
export type Place = (typeof PLACES)[number];

export interface Run {
  readonly place: Place;
  readonly phase: Phase;
  readonly kind: Kind;
  readonly mode: Mode;
  /** From 1. */
  readonly n: number;
}

export function nameOf({ place, phase, kind, mode, n }: Run): string {
  return `${place}.${phase}.${kind.name}.${mode}.${n}`;
}

/** How the node of the faults did, from the best on. */
export const ENDINGS = [
  'no call failed',
  'all acknowledged',
  'some refused',
  'ended in order',
  'ended by its runtime',
  // A disk that fails can do that, too.
  'ended within lmdb by a page',
  // Only injection can: the node has tried the same just before.
  'ended within lmdb by an opening',
] as const;
export type Ending = (typeof ENDINGS)[number];

export interface RunReport {
  readonly ending: Ending;
  /** Calls that failed, as the library in the node wrote them down. */
  readonly failed: readonly string[];
  readonly exit: Exit | null;
  /** After the faults the node takes no write before it is started again. */
  readonly stuck: string | null;
  /** What must not be; empty when all is well. */
  readonly findings: readonly string[];
  readonly tally: Tally;
  /** Of all calls, where they were counted. */
  readonly counts: Counts;
}

/** Codes of an end in order: see ops/README.md. 127 is the dynamic linker's. */
const EXIT_CODES = [0, 1, 3, 4];
/** Of a start: Node.js ends with these before any program of ours runs, and the dynamic linker with 127. */
const START_CODES = [...EXIT_CODES, 7, 12, 13, 127];
/** How native code ends a process. */
const CRASHES = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV', 'SIGBUS'];
/**
 * Calls after whose failure lmdb's native code may end the process. Of a page's write, because it tells of the error in 100 bytes, and the text
 * may be longer (`last_error` in `mdb_page_flush` of lmdb 3.5.6). Of `open`, because it uses then what it has freed (`openEnv` in `env.cpp`):
 * descriptors and addresses are tried before (Room-R1), so that nothing is lacking there but by a failure of exactly this call.
 */
const LMDB_PAGE_FAILS = /(pwrite64|writev)\(.*\/lmdb\/data\.mdb/;
const LMDB_OPEN_FAILS = /(openat|mmap)\(.*\/lmdb\/(data|lock)\.mdb/;
const START_MS = 30_000;
const SETTLED_UNDER_FAULTS_MS = 10_000;
const END_MS = 120_000;
const STUCK_MS = 30_000;
const SETTLED_MS = 180_000;

/** Runs that share a process or a folder. */
export const TOGETHER_MAX = 12;

/** What came of the first of some runs; the others were not made. */
export interface Together {
  /** At least one. Findings of a single run; what was found when all were over is in the last one. */
  readonly reports: readonly RunReport[];
}

interface Prepared {
  readonly nodes: Nodes;
  readonly sets: number;
  /** Folder of the nodes before the workload, and what they hold. */
  readonly before: string;
  readonly model: Model;
  /** The same after operations that are acknowledged and perhaps not applied. */
  readonly killed: string;
  readonly killedModel: Model;
}

export class Runs {
  readonly #program: string;
  readonly #prepared = new Map<string, Prepared>();
  readonly #counts = new Map<string, Counts>();
  /** Gets a line for each call that failed. */
  readonly #log: string;
  readonly #library: string;
  /** Whether nodes are started without the launcher, and so that their calls can fail. */
  #isDirect = false;

  /** story: told of each step. */
  constructor(
    private readonly folder: string,
    private readonly story: (line: string) => void,
  ) {
    mkdirSync(folder, { recursive: true });
    this.#program = writeProgram(folder);
    this.#log = join(folder, 'failed.log');
    this.#library = compileFailingCalls(folder);
  }

  /** What happens without faults: the calls that can fail. Counted once for each place and phase. */
  async count(place: Place, phase: Phase): Promise<Counts> {
    const key = `${place}.${phase}`;
    const known = this.#counts.get(key);
    if (known !== undefined) return known;
    const fault: Fault = { plan: null, runtimeMayEnd: false, waitSec: PATIENT_WAIT_SEC };
    const [report] = await this.#carryOut(place, phase, [fault]);
    if (report === undefined || report.findings.length > 0 || report.stuck !== null || report.tally.told.length > 0)
      throw new Error(`without faults, something is wrong: ${JSON.stringify(report)}`);
    const counts = report.counts as Counts;
    this.#counts.set(key, counts);
    return counts;
  }

  async run(run: Run): Promise<RunReport> {
    const { reports } = await this.together([run]);
    return reports[0] as RunReport;
  }

  /** runs: of one place and one phase, at least one and at most `TOGETHER_MAX`. */
  async together(runs: readonly Run[]): Promise<Together> {
    const { place, phase } = runs[0] as Run;
    const faults = runs.map(({ kind, mode, n }) => ({ plan: faultPlan(kind, mode, n), runtimeMayEnd: kind.runtimeMayEnd }));
    return { reports: await this.#carryOut(place, phase, faults) };
  }

  async #carryOut(place: Place, phase: Phase, faults: readonly Fault[]): Promise<RunReport[]> {
    const sets = phase === 'work' && faults.length > 1 ? TOGETHER_MAX : 1;
    const prepared = await this.#prepare(place === 'one' ? 1 : 2, sets);
    const folder = join(this.folder, 'run');
    copyFolder(phase === 'work' ? prepared.before : prepared.killed, folder);
    const model = (phase === 'work' ? prepared.model : prepared.killedModel).copy();
    const act = phase === 'work' ? this.#work : this.#start;
    const reports: RunReport[] = [];
    const calls = new FailingCalls(nodeFolder(folder, place === 'second' ? 2 : 1), this.folder, this.#log);
    try {
      await act.call(this, { prepared, place, folder, model, calls, faults, reports });
    } finally {
      calls.close();
    }
    return reports;
  }

  // ---------------------------------------------------------------- the node of the faults

  /**
   * One folder for all faults, and one process for as many as it lives through: after it has ended, or takes no more writes, the start that looks
   * for damage goes on with the next fault.
   */
  async #work({ prepared, place, folder, model, calls, faults, reports }: Act): Promise<void> {
    let world = await startWorld(prepared.nodes, folder, this.#program);
    /** How many faults were met by processes before this one. */
    let earlier = 0;
    try {
      await settled(world);
      for (const [set, fault] of faults.entries()) {
        const faulty = faultyOf(world, place);
        const tally = newTally();
        this.#arm(calls, fault);
        await new Workload(
          world.nodes.map(({ client }) => client),
          prepared.nodes,
          model,
          tally,
          set,
          fault.waitSec,
        ).run();
        // Calls that fail are met at the end, too, if none has been met before.
        const isOver = this.#failed().length > 0;
        if (isOver) calls.disarm();
        const stuck = isOver && faulty.exit() === null ? await this.#stuckAfter(faulty, model, set) : null;
        const isLast = set === faults.length - 1;
        const mustEnd = isLast || !isOver || stuck !== null;
        const exit = faulty.exit() ?? (mustEnd ? await endedBySignal(faulty, tally) : null);
        calls.disarm();
        const outcome = { fault, exit, failed: this.#failed(), stuck, tally, counts: calls.counts() };
        reports.push(reportOf(outcome, EXIT_CODES, reports.slice(earlier)));
        if (isLast) break;
        if (exit === null && !mustEnd) continue;
        earlier = reports.length;
        this.#tellLogs(world);
        await world.close();
        const next = await this.#startedAfter(prepared, folder, model, 'first');
        if ('findings' in next) return addFindings(reports, next.findings);
        world = next;
      }
    } finally {
      this.#tellLogs(world);
      await world.close();
    }
    const first = await this.#wrongAfter(prepared, folder, model, 'first');
    addFindings(reports, first.length > 0 ? first : await this.#wrongAfter(prepared, folder, model, 'second'));
  }

  /** One folder for all faults: each starts on what the start after the last one left. */
  async #start({ faults, reports, ...act }: Act): Promise<void> {
    for (const [at, fault] of faults.entries()) {
      const { prepared, folder, model } = act;
      reports.push(await this.#startOnce(act, fault));
      const isLast = at === faults.length - 1;
      const first = await this.#wrongAfter(prepared, folder, model, isLast ? 'first' : 'leaving');
      const wrong = first.length === 0 && isLast ? await this.#wrongAfter(prepared, folder, model, 'second') : first;
      addFindings(reports, wrong);
      if (wrong.length > 0) break;
    }
  }

  async #startOnce({ prepared, place, folder, model, calls }: Omit<Act, 'faults' | 'reports'>, fault: Fault): Promise<RunReport> {
    const tally = newTally();
    this.#arm(calls, fault);
    const world = await launchWorld(prepared.nodes, folder, this.#program);
    try {
      const faulty = faultyOf(world, place);
      const ready = await becomesReady(faulty, START_MS);
      if (ready) {
        // As far as it comes to it under faults.
        await settled(world, SETTLED_UNDER_FAULTS_MS).catch(() => {});
        await new Workload(
          world.nodes.map(({ client }) => client),
          prepared.nodes,
          model,
          tally,
          0,
          fault.waitSec,
        ).runShort();
      } else tally.told.push('not ready');
      if (faulty.exit() === null && !ready) this.story('the node is not ready under faults');
      const exit = faulty.exit() ?? (await endedBySignal(faulty, tally));
      const neverBegan = !ready && faulty.log().trim() === '';
      return reportOf({ fault, exit, neverBegan, failed: this.#failed(), stuck: null, tally, counts: calls.counts() }, START_CODES);
    } finally {
      this.#tellLogs(world);
      await world.close();
      calls.disarm();
    }
  }

  #arm(calls: FailingCalls, { plan }: Fault): void {
    rmSync(this.#log, { force: true });
    calls.arm(plan);
  }

  /** Calls that failed since calls were armed last. */
  #failed(): string[] {
    return existsSync(this.#log) ? readFileSync(this.#log, 'utf8').trim().split('\n') : [];
  }

  /** Why a node takes no writes after the faults; null when it does. */
  async #stuckAfter(node: WorldNode, model: Model, set: number): Promise<string | null> {
    const names = certainCollections(model).filter((name) => name.endsWith(`-${set}`));
    const deadline = performance.now() + STUCK_MS;
    for (;;) {
      try {
        await within(15_000, probe(node.client, names));
        return null;
      } catch (error) {
        if (node.exit() !== null) return null;
        if (performance.now() > deadline) return (error as Error).message;
      }
      await sleep(200);
    }
  }

  // ---------------------------------------------------------------- afterwards

  /** A start without faults, which is ended. */
  async #wrongAfter(prepared: Prepared, folder: string, model: Model, which: Start): Promise<readonly string[]> {
    const world = await this.#startedAfter(prepared, folder, model, which);
    if ('findings' in world) return world.findings;
    const start = START_NAMES[which];
    try {
      if (which === 'leaving') {
        const clients = world.nodes.map(({ client }) => client);
        await new Workload(clients, prepared.nodes, model, newTally(), 0, PATIENT_WAIT_SEC).leaveUnappliedAgain();
        return [];
      }
      for (const node of world.nodes) node.signal('SIGTERM');
      const exits = await within(END_MS, Promise.all(world.nodes.map(({ exited }) => exited)));
      return exits.some(({ code }) => code !== 0) ? [`${start}: an end in order gave ${JSON.stringify(exits)}`] : [];
    } catch (error) {
      return [`${start}: ${(error as Error).message}`];
    } finally {
      this.#tellLogs(world);
      await world.close();
    }
  }

  /** The same, which goes on where nothing is wrong. */
  async #startedAfter({ nodes }: Prepared, folder: string, model: Model, which: Start): Promise<World | { findings: readonly string[] }> {
    const start = START_NAMES[which];
    let world: World;
    try {
      world = await startWorld(nodes, folder, this.#program);
    } catch (error) {
      return { findings: [`${start}: ${(error as Error).message}`] };
    }
    const findings: string[] = [];
    try {
      await settled(world);
      for (const node of world.nodes) {
        const { collections } = await node.client.result<{ collections: { name: string }[] }>('GET', '/collections');
        const names = collections.map(({ name }) => name);
        await probe(node.client, which === 'second' ? names.slice(0, 1) : names);
        const at = nodes === 1 ? '' : ` at node ${node.number}`;
        const wrong = await wrongData(node.client, model, which !== 'second');
        findings.push(...wrong.map((finding) => `${start}${at}: ${finding}`));
      }
    } catch (error) {
      findings.push(`${start}: ${(error as Error).message}`);
    }
    if (findings.length === 0) return world;
    this.#tellLogs(world);
    await world.close();
    return { findings };
  }

  async #prepare(nodes: Nodes, sets: number): Promise<Prepared> {
    const key = `${nodes}-${sets}`;
    const known = this.#prepared.get(key);
    if (known !== undefined) return known;
    // Paths and ports are kept in the files, so everything happens in the folder of the runs.
    const folder = join(this.folder, 'run');
    const before = join(this.folder, `before-${key}`);
    const killed = join(this.folder, `killed-${key}`);
    rmSync(folder, { recursive: true, force: true });
    const model = Model.empty(sets);
    let world = await startWorld(nodes, folder, this.#program);
    await settled(world);
    if (!this.#isDirect) {
      writeCommand(this.folder, commandOf((world.nodes[0] as WorldNode).pid, variablesFor(this.#library)));
      this.#isDirect = true;
    }
    const workload = (of: Model, set: number): Workload =>
      new Workload(
        world.nodes.map(({ client }) => client),
        nodes,
        of,
        newTally(),
        set,
        PATIENT_WAIT_SEC,
      );
    for (let set = 0; set < sets; set++) await workload(model, set).prepare();
    await ended(world);
    copyFolder(folder, before);
    world = await startWorld(nodes, folder, this.#program);
    await settled(world);
    const killedModel = model.copy();
    await workload(killedModel, 0).leaveUnapplied();
    await world.close();
    copyFolder(folder, killed);
    const prepared = { nodes, sets, before, model, killed, killedModel };
    this.#prepared.set(key, prepared);
    return prepared;
  }

  #tellLogs(world: World): void {
    for (const node of world.nodes) this.story(`log of node ${node.number}:\n${node.log().trim().replace(/^/gm, '    ')}`);
  }
}

/**
 * Starts after the faults. `first`: all that can be asked is compared, and everything takes writes. `leaving`: the same, and operations are left
 * unapplied by nodes that are killed. `second`: what is shown is compared once more.
 */
type Start = 'first' | 'leaving' | 'second';

const START_NAMES: Readonly<Record<Start, string>> = {
  first: 'the start after the faults',
  leaving: 'the start after the faults',
  second: 'the second start after the faults',
};

/** What fails in one run. */
interface Fault {
  /** Null: calls are counted. */
  readonly plan: FaultPlan | null;
  readonly runtimeMayEnd: boolean;
  /** How long changes are waited for under it; as long as builds may fail where it is left out. */
  readonly waitSec?: number;
}

interface Act {
  readonly prepared: Prepared;
  readonly place: Place;
  readonly folder: string;
  readonly model: Model;
  readonly calls: FailingCalls;
  readonly faults: readonly Fault[];
  /** Of the faults that were made, in their order. */
  readonly reports: RunReport[];
}

/** How a node did under a fault. */
interface Outcome extends Pick<RunReport, 'exit' | 'failed' | 'stuck' | 'tally' | 'counts'> {
  readonly fault: Fault;
  /** Node.js waits for ever for a thread of its own that it could not start, before any program begins: it had to be ended. */
  readonly neverBegan?: boolean;
}

/** earlier: of faults of the same process. Memory that lmdb has overrun may end it much later. */
function reportOf(outcome: Outcome, codes: readonly number[], earlier: readonly RunReport[] = []): RunReport {
  const { counts, exit, failed, fault, stuck, tally } = outcome;
  const { runtimeMayEnd } = fault;
  const earlierFailed = earlier.flatMap((report) => report.failed);
  const findings = [...tally.findings];
  const ending =
    runtimeMayEnd && outcome.neverBegan === true
      ? 'ended by its runtime'
      : endingOf(exit, failed, tally, runtimeMayEnd, [...earlierFailed, ...failed]);
  if (exit !== null && ending === 'ended in order' && !codes.includes(exit.code ?? -1))
    findings.push(`the node ended with ${JSON.stringify(exit)}`);
  return { ending, failed, exit, stuck, findings, tally, counts };
}

/** What was found after the faults of the last report. */
function addFindings(reports: RunReport[], findings: readonly string[]): void {
  const last = reports.pop();
  if (last !== undefined) reports.push({ ...last, findings: [...last.findings, ...findings] });
}

/** The exit after SIGTERM; a node that does not end in time is killed, which is a finding. */
async function endedBySignal(node: WorldNode, tally: Tally): Promise<Exit | null> {
  node.signal('SIGTERM');
  const inTime = (milliseconds: number) => Promise.race([node.exited, sleep(milliseconds, null, { ref: false })]);
  const exit = await inTime(END_MS);
  if (exit !== null) return exit;
  tally.findings.push(`the node does not end within ${END_MS} ms after SIGTERM`);
  node.signal('SIGKILL');
  await node.exited;
  return null;
}

async function ended(world: World): Promise<void> {
  for (const node of world.nodes) node.signal('SIGTERM');
  await Promise.all(world.nodes.map(({ exited }) => exited));
  await world.close();
}

/** Every node sees all peers, and its replicas are Active. */
async function settled(world: World, timeoutMs = SETTLED_MS): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const problems = await Promise.all(
      world.nodes.map((node) => unsettled(node, world.nodes.length).catch((error: Error) => error.message)),
    );
    const problem = problems.find((text) => text !== null);
    if (problem === undefined) return;
    if (performance.now() > deadline) throw new Error(`not settled after ${timeoutMs} ms: ${problem}`);
    await sleep(100);
  }
}

async function unsettled({ client, number }: WorldNode, nodes: number): Promise<string | null> {
  if (nodes > 1) {
    const { peers, raft_info } = await client.result<{ peers: object; raft_info: { leader: unknown; is_voter: boolean } }>(
      'GET',
      '/cluster',
    );
    if (Object.keys(peers).length < nodes || raft_info.leader === null || !raft_info.is_voter)
      return `node ${number} is no voter of a cluster with a leader`;
  }
  const { collections } = await client.result<{ collections: { name: string }[] }>('GET', '/collections');
  for (const { name } of collections) {
    type Shard = { readonly state: string };
    const { local_shards, remote_shards, shard_transfers } = await client.result<{
      local_shards: Shard[];
      remote_shards: Shard[];
      shard_transfers: unknown[];
    }>('GET', `/collections/${name}/cluster`);
    const states = [...local_shards, ...remote_shards].map(({ state }) => state);
    if (states.length < nodes || shard_transfers.length > 0 || states.some((state) => state !== 'Active'))
      return `at node ${number}, replicas of ${name} are ${states.join(', ')}, with ${shard_transfers.length} transfers`;
  }
  return null;
}

function faultyOf(world: World, place: Place): WorldNode {
  return world.nodes[place === 'second' ? 1 : 0] as WorldNode;
}

function endingOf(
  exit: Exit | null,
  failed: readonly string[],
  tally: Tally,
  runtimeMayEnd: boolean,
  failedInAll: readonly string[],
): Ending {
  if (exit !== null && exit.signal !== null && CRASHES.includes(exit.signal)) {
    if (runtimeMayEnd) return 'ended by its runtime';
    if (failedInAll.some((line) => LMDB_PAGE_FAILS.test(line))) return 'ended within lmdb by a page';
    if (failed.some((line) => LMDB_OPEN_FAILS.test(line))) return 'ended within lmdb by an opening';
  }
  if (exit !== null && exit.code !== 0) return 'ended in order';
  if (failed.length === 0) return 'no call failed';
  return tally.refused + tally.unknown > 0 ? 'some refused' : 'all acknowledged';
}

async function within<Value>(milliseconds: number, asked: Promise<Value>): Promise<Value> {
  const late = sleep(milliseconds, undefined, { ref: false }).then(() => {
    throw new Error(`nothing within ${milliseconds} ms`);
  });
  return Promise.race([asked, late]);
}

/** How many parts `inLayers` puts behind each other. */
const LAYERS = 40;

/**
 * From coarse to fine: the first layer has N of each sort that are far apart, and each layer fills the gaps of those before. So whatever time is
 * given, each sort has its share, and those with few N are through first. Within a layer by place and phase, as only such runs share starts.
 */
export function inLayers(runs: readonly Run[]): Run[] {
  const layered = [...sorts(runs).values()].flatMap((own) =>
    [...own]
      .sort((a, b) => mirrored(a.n - 1) - mirrored(b.n - 1))
      .map((run, at) => ({ run, layer: Math.floor((at * LAYERS) / Math.max(LAYERS, own.length)), group: `${run.place}.${run.phase}` })),
  );
  return layered.sort((a, b) => a.layer - b.layer || (a.group < b.group ? -1 : a.group > b.group ? 1 : 0)).map(({ run }) => run);
}

/** A number below 1 whose binary digits behind the point are those of `at`, mirrored: numbers in a row become far apart. */
function mirrored(at: number): number {
  let [rest, digit, sum] = [at, 0.5, 0];
  for (; rest > 0; rest = Math.floor(rest / 2), digit /= 2) if (rest % 2 === 1) sum += digit;
  return sum;
}

/** By place, phase, kind and mode. */
export function sorts(runs: readonly Run[]): Map<string, Run[]> {
  const found = new Map<string, Run[]>();
  for (const run of runs) {
    const own = found.get(sortOf(run)) ?? [];
    if (own.push(run) === 1) found.set(sortOf(run), own);
  }
  return found;
}

export function sortOf({ place, phase, kind, mode }: Run): string {
  return [place, phase, kind.name, mode].join('.');
}

/** All runs that there are, in their order. */
export async function allRuns(
  runs: Runs,
  places: readonly Place[],
  phases: readonly Phase[],
  kinds: readonly Kind[],
  modes: readonly Mode[],
): Promise<Run[]> {
  const all: Run[] = [];
  for (const place of places)
    for (const phase of phases) {
      const { most } = await runs.count(place, phase);
      for (const kind of KINDS.filter((own) => kinds.includes(own)))
        for (const mode of modes) for (let n = 1; n <= (most.get(kind.name) ?? 0); n++) all.push({ place, phase, kind, mode, n });
    }
  return all;
}

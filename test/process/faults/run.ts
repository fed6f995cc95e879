/**
 * Runs in which calls of the kernel fail. A world (one node, or two that hold copies of each other) is prepared once. Each run lets the n-th of
 * each call of a kind fail in each thread of one node. Then all that was acknowledged must be there, nothing half, all must work, and the node must start again.
 *
 * Starts are what runs cost, so several runs, a group, share a folder and a process for as long as it lives. What is compared when:
 * - `work`: each fault meets a set of collections of its own. When calls have failed, writes are tried in that set. After a process that ended, takes
 *   no writes, or in which no call failed (then it is ended, for calls that its end makes), the start that looks compares the sets since the last one.
 * - `start`: the node is started again for each fault, on a folder of a process that was killed with work unapplied. Where it becomes ready and
 *   calls have failed, nothing fails from then on, and it is compared itself. After any other end, a start without faults is. Then work is left unapplied
 *   again, and it is killed.
 * - The other node of a cluster lives on, and is compared each time, too.
 * - At the end of each group: two starts of all nodes, which end in order. All that the group has touched is compared.
 * Where something is found, each run is made alone.
 */

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ended, endedBySignal, endedSoon, settled, stuckAfter, wrongIn } from './afterwards.js';
import type { Look } from './check.js';
import { EXIT_CODES, type Fault, lateEnd, type RunReport, reportOf, START_CODES } from './ending.js';
import { compileFailingCalls, FailingCalls, variablesFor } from './failing-calls.js';
import { type Counts, faultPlan } from './kinds.js';
import type { Phase, Place, Run } from './order.js';
import { Model, newTally, PATIENT_WAIT_SEC, type Tally, Workload } from './workload.js';
import {
  becomesReady,
  commandOf,
  copyFolder,
  launchWorld,
  mustBecomeReady,
  type Nodes,
  nodeFolder,
  startWorld,
  type World,
  type WorldNode,
  writeCommand,
  writeProgram,
} from './world.js';

/** A node that does nothing for so long waits for ever. */
const START_IDLE_MS = 20_000;
/**
 * A node that has met failing calls for so long and is not ready tries the same again and again: calls are counted in each thread and process anew,
 * so a thread that is begun again meets the same fault.
 */
const START_RETRIES_MS = 30_000;
/** Threads keep the code that they have compiled when they have lived for so long (ops/kept-code.cjs). Those of the runs rarely do. */
const CODE_KEPT_MS = 5000;
/** What a machine that is too busy may refuse is tried again: preparing a world, and counting in it. */
const PREPARE_TRIES = 3;
const SETTLED_UNDER_FAULTS_MS = 10_000;

/** Runs that share a process or a folder. */
export const TOGETHER_MAX = 12;

/**
 * Options of the nodes, for cheaper runs: one thread for reads instead of one for each CPU, a consensus that ticks seldom, as nodes that wait for
 * each other cost little then, and V8 leaves out what pays in the long run only.
 */
const VARIABLES = ['SERVICE__STORAGE__PERFORMANCE__MAX_SEARCH_THREADS=1', 'SERVICE__CLUSTER__CONSENSUS__TICK_PERIOD_MS=250'];
const NODE_OPTIONS = ['--no-opt', '--no-maglev', '--wasm-lazy-compilation', '--no-wasm-tier-up'];

interface Prepared {
  readonly nodes: Nodes;
  readonly sets: number;
  /** Folder of the nodes before the workload, and what they hold. */
  readonly before: string;
  readonly model: Model;
  /** The same after operations on the first set that are acknowledged and perhaps not applied. */
  readonly killed: string;
  readonly killedModel: Model;
}

export class Runs {
  readonly #program: string;
  readonly #prepared = new Map<string, Prepared>();
  /** Gets a line for each call that failed. */
  readonly #log: string;
  readonly #library: string;
  /** Whether nodes are started without the launcher, and so that their calls can fail. */
  #isDirect = false;
  #isWarm = false;

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

  /** What happens without faults: the calls that can fail. */
  async count(place: Place, phase: Phase): Promise<Counts> {
    const fault: Fault = { plan: null, runtimeMayEnd: false, waitSec: PATIENT_WAIT_SEC };
    for (let tries = 1; ; tries++) {
      const [report] = await this.#carryOut(place, phase, [fault]);
      const isWell = report !== undefined && report.findings.length === 0 && report.stuck === null && report.tally.told.length === 0;
      if (isWell) return report.counts;
      const wrong = `without faults, something is wrong: ${JSON.stringify(report)}`;
      if (tries === PREPARE_TRIES) throw new Error(wrong);
      this.story(wrong);
    }
  }

  async run(run: Run): Promise<RunReport> {
    const [report] = await this.together([run]);
    return report as RunReport;
  }

  /**
   * Reports of the first of some runs, at least one: after findings the others are not made. Findings of a single run; what was found when all were
   * over is in the last one. runs: of one place and one phase, at least one and at most `TOGETHER_MAX`.
   */
  async together(runs: readonly Run[]): Promise<readonly RunReport[]> {
    const { place, phase } = runs[0] as Run;
    const faults = runs.map(({ kind, mode, n }) => ({ plan: faultPlan(kind, mode, n), runtimeMayEnd: kind.runtimeMayEnd }));
    return this.#carryOut(place, phase, faults);
  }

  async #carryOut(place: Place, phase: Phase, faults: readonly Fault[]): Promise<RunReport[]> {
    const sets = phase === 'work' && faults.length > 1 ? TOGETHER_MAX : 1;
    const prepared = await this.#prepare(place === 'one' ? 1 : 2, sets);
    const folder = join(this.folder, 'run');
    copyFolder(phase === 'work' ? prepared.before : prepared.killed, folder);
    const model = (phase === 'work' ? prepared.model : prepared.killedModel).copy();
    const at = place === 'second' ? 1 : 0;
    const calls = new FailingCalls(nodeFolder(folder, at + 1), this.folder, this.#log);
    const act: Act = { prepared, at, folder, model, calls, faults, reports: [] };
    try {
      const wrong = await (phase === 'work' ? this.#work(act) : this.#start(act));
      const { reports } = act;
      addFindings(reports, wrong.length > 0 ? wrong : await this.#wrongAtTheEnd(act));
      return reports;
    } finally {
      calls.close();
    }
  }

  // ---------------------------------------------------------------- the node of the faults

  /** One process for as many faults as it lives through; the start that looks for the damage of one that ended goes on. Returns findings of the last report. */
  async #work({ prepared, at, folder, model, calls, faults, reports }: Act): Promise<readonly string[]> {
    const world = await startWorld(prepared.nodes, folder, this.#program);
    /** How many faults were met by processes before this one. */
    let earlier = 0;
    try {
      await settled(world, [...model.collections.keys()]);
      for (const [set, fault] of faults.entries()) {
        const tally = newTally();
        const begin = (): Promise<void> => workload(world, prepared, model, newTally(), set, PATIENT_WAIT_SEC).begin();
        try {
          await begin();
        } catch (error) {
          if (!(await hasEndedLate(world.nodes[at] as WorldNode, reports, earlier))) {
            if (reports.length === 0) throw error;
            return [`after the faults: ${(error as Error).message}`];
          }
          const wrong = await this.#wrongAfterEnd({ world, prepared, at, model }, sets(reports.length).slice(earlier));
          if (wrong.length > 0) return wrong;
          earlier = reports.length;
          await begin();
        }
        const faulty = world.nodes[at] as WorldNode;
        this.#arm(calls, fault);
        await workload(world, prepared, model, tally, set, fault.waitSec).run();
        // Calls that fail are met at the end, too, if none has been met before.
        const isOver = this.#failed().length > 0;
        if (isOver) calls.disarm();
        const stuck = isOver && faulty.exit() === null ? await stuckAfter(world, faulty, model, set) : null;
        const isLast = set === faults.length - 1;
        const mustEnd = isLast || !isOver || stuck !== null;
        const exit = faulty.exit() ?? (mustEnd ? await endedBySignal(faulty, tally) : null);
        calls.disarm();
        reports.push(
          reportOf({ fault, exit, failed: this.#failed(), stuck, tally, counts: calls.counts() }, EXIT_CODES, reports.slice(earlier)),
        );
        if (isLast) break;
        if (exit === null && !mustEnd) {
          await workload(world, prepared, model, newTally(), set).rest();
          continue;
        }
        const wrong = await this.#wrongAfterEnd({ world, prepared, at, model }, sets(reports.length).slice(earlier));
        if (wrong.length > 0) return wrong;
        earlier = reports.length;
      }
      return [];
    } finally {
      this.#tellLogs(world);
      await world.close();
    }
  }

  /** What is wrong with the sets that the process has met which has ended; the start that looks goes on with the next ones. */
  async #wrongAfterEnd(
    { at, model, prepared, world }: Pick<Act, 'prepared' | 'at' | 'model'> & { readonly world: World },
    met: readonly number[],
  ): Promise<readonly string[]> {
    const wrong = await this.#wrongAfterStart(world, at, model, met);
    if (wrong.length > 0) return wrong;
    for (const set of met) await workload(world, prepared, model, newTally(), set).rest();
    return [];
  }

  /** One folder for all faults: each starts the node on what the start before has left. Returns findings of the last report. */
  async #start({ prepared, at, folder, model, calls, faults, reports }: Act): Promise<readonly string[]> {
    let world: World | null = null;
    try {
      for (const fault of faults) {
        this.#arm(calls, fault);
        if (world === null) world = await launchWorld(prepared.nodes, folder, this.#program);
        else world.launchAgain(at);
        const { report, lives } = await this.#underFaults(world, fault, { prepared, at, model, calls });
        reports.push(report);
        const wrong = lives ? await wrongIn(world, model, [0], 'living') : await this.#wrongAfterStart(world, at, model, [0]);
        if (wrong.length > 0) return lives ? wrong.map((finding) => `in the process of the faults, after them: ${finding}`) : wrong;
        if (fault === faults.at(-1)) break;
        const running = world;
        const leave = (): Promise<void> => workload(running, prepared, model, newTally(), 0, PATIENT_WAIT_SEC).leaveUnappliedAgain();
        try {
          await leave();
        } catch (error) {
          if (!(await hasEndedLate(world.nodes[at] as WorldNode, reports, reports.length - 1))) throw error;
          const wrong = await this.#wrongAfterStart(world, at, model, [0]);
          if (wrong.length > 0) return wrong;
          await leave();
        }
        const faulty = world.nodes[at] as WorldNode;
        faulty.signal('SIGKILL');
        await faulty.exited;
        this.#tellLog(faulty);
      }
      return [];
    } catch (error) {
      return [`after the faults: ${(error as Error).message}`];
    } finally {
      if (world !== null) this.#tellLogs(world);
      await world?.close();
    }
  }

  /** A start and a few operations under a fault. lives: the node is ready, calls have failed, none will, and it takes writes. */
  async #underFaults(
    world: World,
    fault: Fault,
    { prepared, at, model, calls }: Pick<Act, 'prepared' | 'at' | 'model' | 'calls'>,
  ): Promise<{ readonly report: RunReport; readonly lives: boolean }> {
    const tally = newTally();
    const faulty = world.nodes[at] as WorldNode;
    let failingSinceMs = Number.POSITIVE_INFINITY;
    const ready = await becomesReady(faulty, START_IDLE_MS, () => {
      if (existsSync(this.#log)) failingSinceMs = Math.min(failingSinceMs, performance.now());
      return performance.now() > failingSinceMs + START_RETRIES_MS;
    });
    if (ready) {
      // As far as it comes to it under faults.
      await settled(world, [...model.collections.keys()], SETTLED_UNDER_FAULTS_MS).catch(() => {});
      await workload(world, prepared, model, tally, 0, fault.waitSec).runShort();
    } else tally.told.push('not ready');
    const isOver = ready && this.#failed().length > 0;
    if (isOver) calls.disarm();
    else if (!ready && faulty.exit() === null) this.story('the node is not ready under faults');
    const stuck = isOver && faulty.exit() === null ? await stuckAfter(world, faulty, model, 0) : null;
    const exit = faulty.exit() ?? (isOver && stuck === null ? null : await endedBySignal(faulty, tally));
    calls.disarm();
    const neverBegan = !ready && faulty.log().trim() === '';
    const outcome = { fault, exit, neverBegan, failed: this.#failed(), stuck, tally, counts: calls.counts() };
    return { report: reportOf(outcome, START_CODES), lives: isOver && exit === null && stuck === null };
  }

  #arm(calls: FailingCalls, { plan }: Fault): void {
    rmSync(this.#log, { force: true });
    calls.arm(plan);
  }

  /** Calls that failed since calls were armed last. */
  #failed(): string[] {
    return existsSync(this.#log) ? readFileSync(this.#log, 'utf8').trim().split('\n') : [];
  }

  // ---------------------------------------------------------------- afterwards

  /** What is wrong when the node of the faults, which has ended, is started again without any. */
  async #wrongAfterStart(world: World, at: number, model: Model, some: readonly number[]): Promise<readonly string[]> {
    this.#tellLog(world.nodes[at] as WorldNode);
    const wrong = await mustBecomeReady(world.launchAgain(at))
      .then(() => wrongIn(world, model, some, 'all'))
      .catch((error: Error) => [error.message]);
    return wrong.map((finding) => `the start after the faults: ${finding}`);
  }

  /** What is wrong in two starts of all nodes. */
  async #wrongAtTheEnd(act: Act): Promise<readonly string[]> {
    const first = await this.#wrongInStart(act, 'all');
    if (first.length > 0) return first.map((finding) => `the first start at the end: ${finding}`);
    const second = await this.#wrongInStart(act, 'shown');
    return second.map((finding) => `the second start at the end: ${finding}`);
  }

  /** A start of all nodes, which is ended. */
  async #wrongInStart({ prepared, folder, model, reports }: Act, look: Look): Promise<readonly string[]> {
    let world: World | null = null;
    try {
      world = await startWorld(prepared.nodes, folder, this.#program);
      const wrong = await wrongIn(world, model, sets(Math.min(prepared.sets, reports.length)), look);
      if (wrong.length > 0) return wrong;
      const exits = await ended(world);
      return exits.some(({ code }) => code !== 0) ? [`an end in order gave ${JSON.stringify(exits)}`] : [];
    } catch (error) {
      return [(error as Error).message];
    } finally {
      if (world !== null) this.#tellLogs(world);
      await world?.close();
    }
  }

  async #prepare(nodes: Nodes, count: number): Promise<Prepared> {
    const key = `${nodes}-${count}`;
    let prepared = this.#prepared.get(key);
    for (let tries = 1; prepared === undefined; tries++)
      try {
        prepared = await this.#newlyPrepared(nodes, count, key);
      } catch (error) {
        if (tries === PREPARE_TRIES) throw error;
        this.story(`not prepared: ${(error as Error).stack}`);
      }
    this.#prepared.set(key, prepared);
    return prepared;
  }

  async #newlyPrepared(nodes: Nodes, count: number, key: string): Promise<Prepared> {
    // Paths and ports are kept in the files, so everything happens in the folder of the runs.
    const folder = join(this.folder, 'run');
    const before = join(this.folder, `before-${key}`);
    const killed = join(this.folder, `killed-${key}`);
    rmSync(folder, { recursive: true, force: true });
    const model = Model.empty(count);
    const killedModel = await this.#inWorld(nodes, folder, async (world) => {
      await settled(world, []);
      if (!this.#isDirect) {
        const { pid } = world.nodes[0] as WorldNode;
        writeCommand(this.folder, commandOf(pid, [...variablesFor(this.#library), ...VARIABLES], NODE_OPTIONS));
        this.#isDirect = true;
      }
      for (const set of sets(count)) await workload(world, { nodes }, model, newTally(), set, PATIENT_WAIT_SEC).prepare();
      await ended(world);
      copyFolder(folder, before);
      return model.copy();
    });
    await this.#inWorld(nodes, folder, async (world) => {
      await settled(world, [...model.collections.keys()]);
      if (!this.#isWarm) await sleep(CODE_KEPT_MS);
      this.#isWarm = true;
      const first = workload(world, { nodes }, killedModel, newTally(), 0, PATIENT_WAIT_SEC);
      await first.begin();
      await first.leaveUnapplied();
    });
    copyFolder(folder, killed);
    return { nodes, sets: count, before, model, killed, killedModel };
  }

  /** Starts a world, acts in it, and kills what runs of it then. */
  async #inWorld<Value>(nodes: Nodes, folder: string, act: (world: World) => Promise<Value>): Promise<Value> {
    const world = await startWorld(nodes, folder, this.#program);
    try {
      return await act(world);
    } finally {
      await world.close();
    }
  }

  #tellLogs(world: World): void {
    for (const node of world.nodes) this.#tellLog(node);
  }

  #tellLog(node: WorldNode): void {
    this.story(`log of node ${node.number}:\n${node.log().trim().replace(/^/gm, '    ')}`);
  }
}

interface Act {
  readonly prepared: Prepared;
  /** Place of the node of the faults. */
  readonly at: number;
  readonly folder: string;
  readonly model: Model;
  readonly calls: FailingCalls;
  readonly faults: readonly Fault[];
  /** Of the faults that were made, in their order. */
  readonly reports: RunReport[];
}

/**
 * Whether the node has ended after the faults of its reports, those from `earlier` on, as lmdb's overrun memory makes it end at any later moment.
 * The last report says so then.
 */
async function hasEndedLate(node: WorldNode, reports: RunReport[], earlier: number): Promise<boolean> {
  const late = lateEnd(reports.slice(earlier), await endedSoon(node));
  if (late !== null) reports.splice(-1, 1, late);
  return late !== null;
}

/** What was found after the faults of the last report. */
function addFindings(reports: RunReport[], findings: readonly string[]): void {
  const last = reports.pop();
  if (last !== undefined) reports.push({ ...last, findings: [...last.findings, ...findings] });
}

function workload(world: World, { nodes }: Pick<Prepared, 'nodes'>, model: Model, tally: Tally, set: number, waitSec?: number): Workload {
  return new Workload(
    world.nodes.map(({ client }) => client),
    nodes,
    model,
    tally,
    set,
    waitSec,
  );
}

/** The first sets. */
function sets(count: number): number[] {
  return Array.from({ length: count }, (_, set) => set);
}

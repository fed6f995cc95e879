/**
 * Runs in which calls of the kernel fail. A world (one node, or two that hold copies of each other) is prepared once. Each run takes a copy of
 * its folder, lets the n-th of each call of a kind fail in each thread of one node, and starts the world again without faults: then everything acknowledged
 * must be there, nothing half, and all must work, also after one more start.
 */

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Exit } from '../../../ops/node-process.js';
import { certainCollections, probe, wrongData } from './check.js';
import { type Counts, countCalls, counting, injected, injecting, KINDS, type Kind, type Mode } from './kinds.js';
import { attach, type Tracing } from './strace.js';
import { Model, newTally, type Tally, Workload } from './workload.js';
import {
  becomesReady,
  commandOf,
  copyFolder,
  launchWorld,
  type Nodes,
  nodeFolder,
  startWorld,
  traceNextStart,
  traceNoStart,
  type World,
  type WorldNode,
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
  'ended within lmdb',
] as const;
export type Ending = (typeof ENDINGS)[number];

export interface RunReport {
  readonly ending: Ending;
  /** Calls that failed, as strace wrote them down. */
  readonly failed: readonly string[];
  readonly exit: Exit | null;
  /** After the faults the node takes no write before it is started again. */
  readonly stuck: string | null;
  /** What must not be; empty when all is well. */
  readonly findings: readonly string[];
  readonly tally: Tally;
}

/** Codes of an end in order: see ops/README.md. 127 is the dynamic linker's. */
const EXIT_CODES = [0, 1, 3, 4];
/** Of a start: Node.js ends with these before any program of ours runs, and the dynamic linker with 127. */
const START_CODES = [...EXIT_CODES, 7, 12, 13, 127];
/** How native code ends a process. */
const CRASHES = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV', 'SIGBUS'];
/**
 * Calls after whose failure lmdb's native code may end the process. Of `open`, because it frees what it never made then (Room-R1). Of a page's
 * write, because it tells of the error in 100 bytes, and the text may be longer (`last_error` in `mdb_page_flush` of lmdb 3.5.6).
 */
const LMDB_FAILS = /(openat|mmap|pwrite64|writev)\(.*\/lmdb\/(data|lock)\.mdb/;
const START_MS = 25_000;
const END_MS = 40_000;
const LATE_MS = 2000;
const STUCK_MS = 15_000;
const SETTLED_MS = 60_000;

interface Prepared {
  readonly nodes: Nodes;
  /** Folder of the nodes before the workload, and what they hold. */
  readonly before: string;
  readonly model: Model;
  /** The same after operations that are acknowledged and perhaps not applied. */
  readonly killed: string;
  readonly killedModel: Model;
  readonly command: readonly string[];
}

export class Runs {
  readonly #program: string;
  readonly #prepared = new Map<Nodes, Prepared>();
  readonly #counts = new Map<string, Counts>();

  /** story: told of each step. */
  constructor(
    private readonly folder: string,
    private readonly story: (line: string) => void,
  ) {
    mkdirSync(folder, { recursive: true });
    this.#program = writeProgram(folder);
  }

  /** What happens without faults: the calls that can fail. Counted once for each place and phase. */
  async count(place: Place, phase: Phase): Promise<Counts> {
    const key = `${place}.${phase}`;
    const known = this.#counts.get(key);
    if (known !== undefined) return known;
    const traceFile = join(this.folder, `${key}.trace`);
    const report = await this.#carryOut(place, phase, traceFile, counting(traceFile), false);
    if (report.findings.length > 0 || report.stuck !== null || report.tally.told.length > 0)
      throw new Error(`without faults, something is wrong: ${JSON.stringify(report)}`);
    const counts = countCalls(readFileSync(traceFile, 'utf8'), this.folder);
    this.#counts.set(key, counts);
    return counts;
  }

  async run(run: Run): Promise<RunReport> {
    const { paths } = await this.count(run.place, run.phase);
    const traceFile = join(this.folder, 'run.trace');
    const options = injecting(run.kind, run.mode, run.n, paths, traceFile);
    return this.#carryOut(run.place, run.phase, traceFile, options, run.kind.runtimeMayEnd);
  }

  async #carryOut(place: Place, phase: Phase, traceFile: string, options: readonly string[], runtimeMayEnd: boolean): Promise<RunReport> {
    const prepared = await this.#prepare(place === 'one' ? 1 : 2);
    rmSync(traceFile, { force: true });
    const folder = join(this.folder, 'run');
    copyFolder(phase === 'work' ? prepared.before : prepared.killed, folder);
    const model = (phase === 'work' ? prepared.model : prepared.killedModel).copy();
    const tally = newTally();
    const act = phase === 'work' ? this.#work : this.#start;
    const { exit, stuck } = await act.call(this, { prepared, place, folder, traceFile, options, model, tally });
    const failed = existsSync(traceFile) ? injected(readFileSync(traceFile, 'utf8')) : [];
    const findings = [...tally.findings];
    const ending = endingOf(exit, failed, tally, runtimeMayEnd);
    const codes = phase === 'start' ? START_CODES : EXIT_CODES;
    if (exit !== null && ending === 'ended in order' && !codes.includes(exit.code ?? -1))
      findings.push(`the node ended with ${JSON.stringify(exit)}`);
    findings.push(...(await this.#wrongAfter(prepared, folder, model)));
    return { ending, failed, exit, stuck, findings, tally };
  }

  // ---------------------------------------------------------------- the node of the faults

  async #work({ prepared, place, folder, traceFile, options, model, tally }: Act): Promise<Acted> {
    const world = await startWorld(prepared.nodes, folder, this.#program);
    try {
      await settled(world);
      const faulty = faultyOf(world, place);
      const tracing = await attach(faulty.pid, options);
      await new Workload(
        world.nodes.map(({ client }) => client),
        prepared.nodes,
        model,
        tally,
      ).run();
      // Calls that fail are met at the end, too, if none has been met before.
      const isOver = existsSync(traceFile) && injected(readFileSync(traceFile, 'utf8')).length > 0;
      const stuck = isOver && faulty.exit() === null ? await this.#stuckAfter(tracing, faulty, model) : null;
      const exit = faulty.exit() ?? (await endedBySignal(faulty, tally, () => tracing.detach()));
      await tracing.detach();
      return { exit, stuck };
    } finally {
      this.#tellLogs(world);
      await world.close();
    }
  }

  async #start({ prepared, place, folder, options, model, tally }: Act): Promise<Acted> {
    const own = nodeFolder(folder, place === 'second' ? 2 : 1);
    traceNextStart(own, prepared.command, options);
    const world = await launchWorld(prepared.nodes, folder, this.#program);
    try {
      const faulty = faultyOf(world, place);
      const ready = await becomesReady(faulty, START_MS);
      if (ready) {
        // As far as it comes to it under faults.
        await settled(world, START_MS).catch(() => {});
        await new Workload(
          world.nodes.map(({ client }) => client),
          prepared.nodes,
          model,
          tally,
        ).runShort();
      } else tally.told.push('not ready');
      if (faulty.exit() === null && !ready) this.story('the node is not ready under faults');
      return { exit: faulty.exit() ?? (await endedBySignal(faulty, tally, async () => {})), stuck: null };
    } finally {
      this.#tellLogs(world);
      await world.close();
      traceNoStart(own);
    }
  }

  /** Why a node takes no writes after the faults; null when it does. */
  async #stuckAfter(tracing: Tracing, node: WorldNode, model: Model): Promise<string | null> {
    await tracing.detach();
    const deadline = performance.now() + STUCK_MS;
    for (;;) {
      try {
        await within(5000, probe(node.client, certainCollections(model)));
        return null;
      } catch (error) {
        if (node.exit() !== null) return null;
        if (performance.now() > deadline) return (error as Error).message;
      }
      await sleep(200);
    }
  }

  // ---------------------------------------------------------------- afterwards

  /** Two starts without faults, with all that can be asked. */
  async #wrongAfter({ nodes }: Prepared, folder: string, model: Model): Promise<string[]> {
    for (const start of ['the start after the faults', 'the second start after the faults']) {
      let world: World;
      try {
        world = await startWorld(nodes, folder, this.#program);
      } catch (error) {
        return [`${start}: ${(error as Error).message}`];
      }
      try {
        const findings: string[] = [];
        await settled(world);
        for (const node of world.nodes) {
          const { collections } = await node.client.result<{ collections: { name: string }[] }>('GET', '/collections');
          await probe(
            node.client,
            collections.map(({ name }) => name),
          );
          const at = nodes === 1 ? '' : ` at node ${node.number}`;
          findings.push(...(await wrongData(node.client, model)).map((finding) => `${start}${at}: ${finding}`));
        }
        for (const node of world.nodes) node.signal('SIGTERM');
        const exits = await within(END_MS, Promise.all(world.nodes.map(({ exited }) => exited)));
        if (exits.some(({ code }) => code !== 0)) findings.push(`${start}: an end in order gave ${JSON.stringify(exits)}`);
        if (findings.length > 0) return findings;
      } catch (error) {
        return [`${start}: ${(error as Error).message}`];
      } finally {
        this.#tellLogs(world);
        await world.close();
      }
    }
    return [];
  }

  async #prepare(nodes: Nodes): Promise<Prepared> {
    const known = this.#prepared.get(nodes);
    if (known !== undefined) return known;
    // Paths and ports are kept in the files, so everything happens in the folder of the runs.
    const folder = join(this.folder, 'run');
    const before = join(this.folder, `before-${nodes}`);
    const killed = join(this.folder, `killed-${nodes}`);
    rmSync(folder, { recursive: true, force: true });
    const model = Model.empty();
    let world = await startWorld(nodes, folder, this.#program);
    await settled(world);
    const command = commandOf((world.nodes[0] as WorldNode).pid);
    const workload = (of: Model): Workload =>
      new Workload(
        world.nodes.map(({ client }) => client),
        nodes,
        of,
        newTally(),
      );
    await workload(model).prepare();
    await ended(world);
    copyFolder(folder, before);
    world = await startWorld(nodes, folder, this.#program);
    await settled(world);
    const killedModel = model.copy();
    await workload(killedModel).leaveUnapplied();
    await world.close();
    copyFolder(folder, killed);
    const prepared = { nodes, before, model, killed, killedModel, command };
    this.#prepared.set(nodes, prepared);
    return prepared;
  }

  #tellLogs(world: World): void {
    for (const node of world.nodes) this.story(`log of node ${node.number}:\n${node.log().trim().replace(/^/gm, '    ')}`);
  }
}

interface Act {
  readonly prepared: Prepared;
  readonly place: Place;
  readonly folder: string;
  readonly traceFile: string;
  readonly options: readonly string[];
  readonly model: Model;
  readonly tally: Tally;
}

interface Acted {
  readonly exit: Exit | null;
  readonly stuck: string | null;
}

/** The exit after SIGTERM; a node that does not end in time is killed, which is a finding. */
async function endedBySignal(node: WorldNode, tally: Tally, detach: () => Promise<void>): Promise<Exit | null> {
  node.signal('SIGTERM');
  const inTime = (milliseconds: number) => Promise.race([node.exited, sleep(milliseconds, null, { ref: false })]);
  const exit = await inTime(END_MS);
  if (exit !== null) return exit;
  // A process that has crashed stays for as long as strace holds one of its threads.
  await detach();
  const late = await inTime(LATE_MS);
  if (late !== null && late.signal !== null) return late;
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

function endingOf(exit: Exit | null, failed: readonly string[], tally: Tally, runtimeMayEnd: boolean): Ending {
  if (exit !== null && exit.signal !== null && CRASHES.includes(exit.signal)) {
    if (runtimeMayEnd) return 'ended by its runtime';
    if (failed.some((line) => LMDB_FAILS.test(line))) return 'ended within lmdb';
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

/**
 * A start: time until ready and idle memory on an empty folder, time until ready with data in place, and what the first requests cost next
 * to later ones. The built server of another checkout may take its turns beside this one.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startNodeProcess } from '../../node-process.js';
import type { Dataset } from '../common/dataset.js';
import { startHelper } from '../common/helper.js';
import { memory } from '../common/measure.js';
import { readThreads, treeUse } from '../common/threads.js';
import { type Operation, readOperations, upload } from '../requests/operations.js';
import { beginBuilds, COLLECTION, makeCollection, untilIndexed } from '../requests/run.js';
import { type Bench, type Contender, median, restart, runSlice, startContenders, turns } from '../requests/slices.js';

export interface StartSettings {
  readonly rounds: number;
  /** Milliseconds from ready to the look at memory. */
  readonly idleMs: number;
  /** See `RequestSettings`. */
  readonly beside: string | null;
}

/** Medians over the rounds of one side. */
export interface StartFigures {
  readonly side: string;
  readonly emptyReadyMs: number;
  /** Milliseconds of CPU until then. */
  readonly emptyCpuMs: number;
  /** Megabytes; null where the system does not tell. */
  readonly idleMegabytes: number | null;
  readonly filledReadyMs: number;
  readonly filledCpuMs: number;
  /** Microseconds of CPU per search. */
  readonly firstUs: number;
  readonly laterUs: number;
}

interface Rounds {
  readonly emptyReadyMs: number[];
  readonly emptyCpuMs: number[];
  readonly idleMegabytes: number[];
  readonly filledReadyMs: number[];
  readonly filledCpuMs: number[];
  readonly firstUs: number[];
  readonly laterUs: number[];
}

const SEARCHES = 1000;
/**
 * Searches between the first thousand and the later ones, over so many connections that each reader has its part of them: a connection stays with one
 * reader, and each reader's thread has its own compiled code. The later thousand must not meet one that has searched little.
 */
const SEARCHES_BETWEEN = 5000;
const CONNECTIONS_BETWEEN = 16;
const UPLOAD_CONNECTIONS = 4;

export async function measureStart(dataset: Dataset, settings: StartSettings, folder: string): Promise<StartFigures[]> {
  const sides = await startContenders(folder, settings.beside);
  const bench: Bench = { sides, load: startHelper('load'), folder, settings: { ...settings, seconds: 0, connections: [1] } };
  const rounds = new Map(sides.map((side) => [side, noRounds()]));
  try {
    for (let round = 0; round < settings.rounds; round++) {
      for (const side of turns(sides, round)) await startEmpty(bench, side, rounds.get(side) as Rounds, round, settings.idleMs);
    }
    for (const side of sides) await fill(bench, side, dataset);
    const search = readOperations(COLLECTION, dataset).find(({ name, protocol }) => name === 'search' && protocol === 'rest') as Operation;
    for (let round = 0; round < settings.rounds; round++) {
      for (const side of turns(sides, round)) await startFilled(bench, side, rounds.get(side) as Rounds, search);
    }
    return sides.map((side) => figuresOf(side.name, rounds.get(side) as Rounds));
  } finally {
    bench.load.end();
    await Promise.all(sides.map(({ node }) => node.end('SIGTERM')));
  }
}

function noRounds(): Rounds {
  return { emptyReadyMs: [], emptyCpuMs: [], idleMegabytes: [], filledReadyMs: [], filledCpuMs: [], firstUs: [], laterUs: [] };
}

function figuresOf(side: string, rounds: Rounds): StartFigures {
  return {
    side,
    emptyReadyMs: median(rounds.emptyReadyMs),
    emptyCpuMs: median(rounds.emptyCpuMs),
    idleMegabytes: rounds.idleMegabytes.length === 0 ? null : median(rounds.idleMegabytes),
    filledReadyMs: median(rounds.filledReadyMs),
    filledCpuMs: median(rounds.filledCpuMs),
    firstUs: median(rounds.firstUs),
    laterUs: median(rounds.laterUs),
  };
}

async function startEmpty({ folder }: Bench, side: Contender, rounds: Rounds, round: number, idleMs: number): Promise<void> {
  const own = join(folder, `empty-${side.name}-${round}`);
  mkdirSync(own);
  const node = await startNodeProcess({ folder: own, program: side.program });
  try {
    rounds.emptyReadyMs.push(node.readyMs);
    rounds.emptyCpuMs.push(cpuMsOf(node.pid));
    await new Promise((done) => setTimeout(done, idleMs));
    const used = memory(node.pid);
    if (used !== null) rounds.idleMegabytes.push(used.rss);
  } finally {
    await node.end('SIGTERM');
  }
}

async function fill(bench: Bench, side: Contender, dataset: Dataset): Promise<void> {
  await makeCollection(side, dataset);
  const points = upload('grpc', COLLECTION, dataset, 0, dataset.count);
  await runSlice(bench, side, points, { connections: UPLOAD_CONNECTIONS, requests: points.requests.length });
  await beginBuilds(side);
  await untilIndexed(side);
}

async function startFilled(bench: Bench, side: Contender, rounds: Rounds, search: Operation): Promise<void> {
  await restart(side);
  rounds.filledReadyMs.push(side.node.readyMs);
  rounds.filledCpuMs.push(cpuMsOf(side.node.pid));
  const searches = async (requests: number, connections = 1): Promise<number> => {
    const { units, use } = await runSlice(bench, side, search, { connections, requests });
    return use.cpuUs / units;
  };
  rounds.firstUs.push(await searches(SEARCHES));
  await searches(SEARCHES_BETWEEN, CONNECTIONS_BETWEEN);
  rounds.laterUs.push(await searches(SEARCHES));
}

/** Of all its threads, since the process began. */
function cpuMsOf(pid: number): number {
  return treeUse(new Map(), readThreads(pid)).cpuUs / 1000;
}

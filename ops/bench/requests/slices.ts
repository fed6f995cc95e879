/** Servers that are asked in turn, short slices of load on them, and the figures that come of the slices. */

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import type { Helper } from '../common/helper.js';
import type { LoadAccess, LoadResult, ToLoad } from '../common/jobs.js';
import { writeRequests } from '../common/requests.js';
import { readThreads, type TreeUse, treeUse } from '../common/threads.js';
import type { Operation } from './operations.js';

export interface RequestSettings {
  /** Of each slice. */
  readonly seconds: number;
  /** Slices of each operation for each side. */
  readonly rounds: number;
  readonly connections: readonly number[];
  /** Folder of a built checkout whose server is measured in turn with this one; null: none. */
  readonly beside: string | null;
}

/** Medians over the slices of one side. */
export interface Figures {
  readonly perSecond: number;
  /** Microseconds of CPU per request, or per point of an upload: of all threads, and of the main thread alone. */
  readonly cpuUs: number;
  readonly mainUs: number;
  /** Times that a thread was woken, per request or point. */
  readonly wakeUps: number;
  readonly p50: number;
  readonly p99: number;
}

export interface RequestRow {
  readonly protocol: Operation['protocol'];
  readonly operation: string;
  readonly connections: number;
  readonly here: Figures;
  readonly beside: Figures | null;
  /** Median over the pairs of slices of CPU here divided by CPU beside. */
  readonly ratio: number | null;
}

export interface Contender {
  readonly name: string;
  readonly folder: string;
  readonly program: string | undefined;
  node: RunningNode;
}

/** Who is asked. */
export interface AskedNode {
  readonly node: Pick<RunningNode, 'pid' | 'port' | 'grpcPort'>;
}

export interface Slice {
  readonly result: LoadResult;
  readonly use: TreeUse;
  /** Requests, or points of an upload. */
  readonly units: number;
}

export interface Bench {
  readonly sides: readonly Contender[];
  readonly load: Helper<ToLoad>;
  readonly folder: string;
  readonly settings: RequestSettings;
}

export async function startContenders(folder: string, beside: string | null): Promise<Contender[]> {
  const sides: Contender[] = [];
  const programs: [string, string | undefined][] = [['this', undefined]];
  if (beside !== null) programs.push(['beside', programIn(beside)]);
  for (const [name, program] of programs) {
    const own = join(folder, name);
    mkdirSync(own);
    sides.push({ name, folder: own, program, node: await startNodeProcess({ folder: own, program }) });
  }
  return sides;
}

/** How a checkout starts its server: by its launcher, or in older ones by its built file. */
export function programIn(checkout: string): string {
  const launcher = join(checkout, 'ops', 'launch.sh');
  return existsSync(launcher) ? launcher : join(checkout, 'dist', 'ops', 'main.js');
}

/** Ends a side's server and starts another one on its data. */
export async function restart(side: Contender, environment: Readonly<Record<string, string>> = {}): Promise<void> {
  await side.node.end('SIGTERM');
  side.node = await startNodeProcess({ folder: side.folder, program: side.program, environment });
}

export interface Limits {
  readonly connections: number;
  readonly requests?: number;
  readonly seconds?: number;
  readonly access?: LoadAccess;
}

/** Sends an operation's requests to a side for a while. Rejects when an answer was an error. */
export async function runSlice(
  { load, folder }: Bench,
  { node }: AskedNode,
  { name, protocol, requests }: Operation,
  limits: Limits,
): Promise<Slice> {
  const requestsFile = join(folder, 'slice.requests');
  writeRequests(requestsFile, requests);
  const before = readThreads(node.pid);
  const result = await load.run<LoadResult>({
    kind: 'load',
    ports: [protocol === 'grpc' ? node.grpcPort : node.port],
    protocol,
    requestsFile,
    connections: limits.connections,
    requests: limits.requests ?? Number.POSITIVE_INFINITY,
    seconds: limits.seconds ?? Number.POSITIVE_INFINITY,
    requestsMin: 1,
    keepBodies: false,
    ...(limits.access === undefined ? {} : { access: limits.access }),
  });
  if (result.errors > 0)
    throw new Error(`${name}: ${result.errors} of ${result.requests} requests failed; the first: ${result.firstError}`);
  return { result, use: treeUse(before, readThreads(node.pid)), units: result.requests };
}

/** The side that goes first changes from round to round. */
export function turns<Side>(sides: readonly Side[], round: number): readonly Side[] {
  return round % 2 === 0 ? sides : [...sides].reverse();
}

export function rowOf(
  { sides }: Bench,
  { name, protocol }: Pick<Operation, 'name' | 'protocol'>,
  connections: number,
  slices: ReadonlyMap<Contender, readonly Slice[]>,
): RequestRow {
  const [here, beside] = sides.map((side) => slices.get(side) as readonly Slice[]);
  const cpuUs = ({ use, units }: Slice): number => use.cpuUs / units;
  return {
    protocol,
    operation: name,
    connections,
    here: sliceFigures(here as readonly Slice[]),
    beside: beside === undefined ? null : sliceFigures(beside),
    ratio: beside === undefined ? null : median((here as readonly Slice[]).map((slice, at) => cpuUs(slice) / cpuUs(beside[at] as Slice))),
  };
}

export function sliceFigures(slices: readonly Slice[]): Figures {
  return {
    perSecond: median(slices.map(({ result, units }) => units / result.seconds)),
    cpuUs: median(slices.map(({ use, units }) => use.cpuUs / units)),
    mainUs: median(slices.map(({ use, units }) => use.mainUs / units)),
    wakeUps: median(slices.map(({ use, units }) => use.sleeps / units)),
    p50: median(slices.map(({ result }) => result.p50)),
    p99: median(slices.map(({ result }) => result.p99)),
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

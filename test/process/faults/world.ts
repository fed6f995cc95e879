/** One node or a cluster of two on a folder, as the runs need them: started with or without faults, ended. */

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Exit, LAUNCHER, launchNode } from '../../../ops/node-process.js';
import { freePorts } from '../../../ops/ports.js';
import { RestClient } from '../../../ops/rest-client.js';

export type Nodes = 1 | 2;

export interface WorldNode {
  /** From 1. */
  readonly number: number;
  readonly client: RestClient;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** Null while it runs. */
  exit(): Exit | null;
  log(): string;
  signal(signal: NodeJS.Signals): void;
}

export interface World {
  /** In the order of their numbers; a node that is launched again stands in the place of the process before it. */
  readonly nodes: readonly WorldNode[];
  /** Launches the node at a place of `nodes` again, which has ended, beside those that run; does not wait. */
  launchAgain(at: number): WorldNode;
  /** Kills what still runs, and lets connections go. */
  close(): Promise<void>;
}

/** A start without faults, also on a machine that has hardly a moment for it. */
const READY_MS = 600_000;

/** In the folder of the program: words of the command that starts a node without the launcher, which asks each Node.js for its version. */
const DIRECT = 'direct.txt';

/**
 * The program of each node: the command of `direct.txt` beside it, or the launcher while there is none. Both take the arguments of the launcher.
 */
export function writeProgram(folder: string): string {
  const program = join(folder, 'program.sh');
  const direct = join(folder, DIRECT);
  const script = `#!/bin/sh
if [ -f '${direct}' ]; then exec $(cat '${direct}') "$@"; fi
exec '${LAUNCHER}' "$@"
`;
  rmSync(direct, { force: true });
  writeFileSync(program, script, { mode: 0o755 });
  return program;
}

/** From now on the program beside which it lies is this command. */
export function writeCommand(folder: string, command: readonly string[]): void {
  writeFileSync(join(folder, DIRECT), command.join('\n'));
}

/** What starts the process again without the launcher: words, variables that the launcher has set, and some more; nodeOptions: further ones of Node.js. */
export function commandOf(pid: number, more: readonly string[], nodeOptions: readonly string[]): readonly string[] {
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  const main = words.findIndex((word) => /main\.c?js$/.test(word));
  const variables = readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .filter((variable) => /^(NODE_COMPILE_CACHE|TROUPE_STARTED|MALLOC_\w+)=/.test(variable))
    // It is "reason version", and words are split at spaces.
    .map((variable) => variable.replace(/^(TROUPE_STARTED=\S+) .*/, '$1'));
  return ['env', ...more, ...variables, ...words.slice(0, main), ...nodeOptions, ...words.slice(main, main + 1)];
}

/** Of node `number` in a world's folder. */
export function nodeFolder(folder: string, number: number): string {
  return join(folder, `node-${number}`);
}

/** Replaces a folder by a copy of another one. */
export function copyFolder(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true });
  cpSync(from, to, { recursive: true });
}

/** Starts a world's nodes and does not wait. A new cluster is founded by the first node, which the second one joins. */
export async function launchWorld(nodes: Nodes, folder: string, program: string): Promise<World> {
  const ports = await portsIn(folder, nodes);
  const launch = (at: number): WorldNode => {
    const { grpc, internal, rest } = ports[at] as Ports;
    const number = at + 1;
    const own = nodeFolder(folder, number);
    mkdirSync(own, { recursive: true });
    const bootstrap = number === 1 ? [] : ['--bootstrap', uriOf((ports[0] as Ports).internal)];
    const launched = launchNode({
      folder: own,
      program,
      port: rest,
      grpcPort: grpc,
      options: nodes === 1 ? [] : ['--uri', uriOf(internal), ...bootstrap],
      environment: nodes === 1 ? {} : { SERVICE__CLUSTER__ENABLED: 'true', SERVICE__CLUSTER__P2P__PORT: String(internal) },
    });
    let exit: Exit | null = null;
    void launched.exited.then((how) => {
      exit = how;
    });
    const { exited, log, pid, signal } = launched;
    return { number, client: new RestClient(rest), pid, exited, exit: () => exit, log, signal };
  };
  const world = ports.map((_, at) => launch(at));
  return {
    nodes: world,
    launchAgain(at) {
      world[at]?.client.close();
      const node = launch(at);
      world[at] = node;
      return node;
    },
    async close() {
      for (const node of world) node.client.close();
      for (const node of world) if (node.exit() === null) node.signal('SIGKILL');
      await Promise.all(world.map(({ exited }) => exited));
    },
  };
}

/**
 * Whether it has become ready; false: it ended before, or it has neither done anything for `idleMs` nor become ready meanwhile, or is not ready after
 * `READY_MS`, or `isHopeless` says so. On a busy machine a start takes long, and is no idle one.
 */
export async function becomesReady(node: WorldNode, idleMs = READY_MS, isHopeless = (): boolean => false): Promise<boolean> {
  const deadline = performance.now() + READY_MS;
  let worked = { ticks: 0, at: performance.now() };
  while (node.exit() === null && performance.now() < deadline && performance.now() < worked.at + idleMs && !isHopeless()) {
    const ticks = ticksOf(node.pid);
    if (ticks > worked.ticks) worked = { ticks, at: performance.now() };
    // Each question costs a process that starts some milliseconds.
    if (!node.log().includes('Troupe is listening')) {
      await sleep(20);
      continue;
    }
    const asked = node.client.call('GET', '/readyz').catch(() => null);
    const answer = await Promise.race([asked, sleep(1000, null)]);
    if (answer?.status === 200) return true;
    await sleep(50);
  }
  return false;
}

/** CPU time of a process, in hundredths of a second; 0 when it is not there any more. */
export function ticksOf(pid: number | 'self', waitedFor = false): number {
  try {
    const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    return fields
      .split(' ')
      .slice(11, waitedFor ? 15 : 13)
      .reduce((sum, ticks) => sum + Number(ticks), 0);
  } catch {
    return 0;
  }
}

/** Starts a world of which all nodes must become ready. Rejects with what one printed that does not. */
export async function startWorld(nodes: Nodes, folder: string, program: string): Promise<World> {
  const world = await launchWorld(nodes, folder, program);
  try {
    await Promise.all(world.nodes.map(mustBecomeReady));
  } catch (error) {
    await world.close();
    throw error;
  }
  return world;
}

/** Rejects with what a node printed that is not ready in time. */
export async function mustBecomeReady(node: WorldNode): Promise<void> {
  if (await becomesReady(node)) return;
  const ended = node.exit();
  const how = ended === null ? `is not ready after ${READY_MS} ms` : `ended before it was ready: ${JSON.stringify(ended)}`;
  throw new Error(`node ${node.number} ${how}; the end of its log:\n${node.log().slice(-2000)}`);
}

interface Ports {
  readonly rest: number;
  readonly grpc: number;
  readonly internal: number;
}

/** Peers know each other by their ports, so those of a folder stay. */
async function portsIn(folder: string, nodes: Nodes): Promise<readonly Ports[]> {
  const file = join(folder, 'ports.json');
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Ports[];
  const free = await freePorts(nodes * 3);
  const ports = Array.from({ length: nodes }, (_, at) => {
    const [rest = 0, grpc = 0, internal = 0] = free.slice(at * 3);
    return { rest, grpc, internal };
  });
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, JSON.stringify(ports));
  return ports;
}

function uriOf(port: number): string {
  return `http://127.0.0.1:${port}`;
}

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
  readonly nodes: readonly WorldNode[];
  /** Kills what still runs, and lets connections go. */
  close(): Promise<void>;
}

const READY_MS = 150_000;

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

/** What starts the process again without the launcher: words, variables that the launcher has set, and some more. */
export function commandOf(pid: number, more: readonly string[]): readonly string[] {
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  const main = words.findIndex((word) => /main\.c?js$/.test(word));
  const variables = readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .filter((variable) => /^(NODE_COMPILE_CACHE|MALLOC_\w+)=/.test(variable));
  return ['env', ...more, ...variables, ...words.slice(0, main + 1)];
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
  const world = ports.map(({ grpc, internal, rest }, at): WorldNode => {
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
  });
  return {
    nodes: world,
    async close() {
      for (const node of world) node.client.close();
      for (const node of world) if (node.exit() === null) node.signal('SIGKILL');
      await Promise.all(world.map(({ exited }) => exited));
    },
  };
}

/** Whether it has become ready; false: it ended before, or is not after `timeoutMs`. */
export async function becomesReady(node: WorldNode, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (node.exit() === null && performance.now() < deadline) {
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

/** Starts a world of which all nodes must become ready. Rejects with what one printed that does not. */
export async function startWorld(nodes: Nodes, folder: string, program: string): Promise<World> {
  const world = await launchWorld(nodes, folder, program);
  const ready = await Promise.all(world.nodes.map((node) => becomesReady(node, READY_MS)));
  const late = world.nodes.find((_, at) => !ready[at]);
  if (late === undefined) return world;
  const ended = late.exit();
  await world.close();
  const how = ended === null ? `is not ready after ${READY_MS} ms` : `ended before it was ready: ${JSON.stringify(ended)}`;
  throw new Error(`node ${late.number} ${how}; the end of its log:\n${late.log().slice(-2000)}`);
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

/**
 * A cluster on this machine behind `npm run cluster -- --nodes 3`: says where each node is and what becomes of it, and takes
 * commands (`help`). Ctrl-C or the end of the input ends all nodes.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Authority } from '../tls/authority.js';
import { COMMANDS, parseClusterCommand, type ScriptCommand } from './commands.js';
import { LocalCluster } from './local-cluster.js';
import type { LocalNode, ProcessState } from './local-node.js';
import { type LocalNodeState, stateLine } from './state-line.js';

const WATCH_MS = 250;
const NODES = 3;
const NODES_MAX = 32;

const USAGE = `Usage: npm run cluster -- [--nodes 3] [--folder <folder>] [--tls]

  --nodes <number>   nodes to start, 1 to ${NODES_MAX}; ${NODES} without it
  --folder <folder>  keeps their data there, and goes on with what is there; without it they are removed at the end
  --tls              clients and nodes talk within TLS: an authority and a certificate for each node are made at each start
`;

interface ProcessChange {
  /** States of the process in which the command changes something. */
  readonly from: readonly ProcessState[];
  readonly run: (cluster: LocalCluster, node: number) => unknown;
}

const PROCESS_CHANGES: Readonly<Record<'stop' | 'kill' | 'start' | 'pause' | 'resume', ProcessChange>> = {
  stop: { from: ['running', 'paused'], run: (cluster, node) => cluster.node(node).stop() },
  kill: { from: ['running', 'paused'], run: (cluster, node) => cluster.node(node).kill() },
  start: { from: ['ended'], run: (cluster, node) => cluster.launch(node) },
  pause: { from: ['running'], run: (cluster, node) => cluster.node(node).pause() },
  resume: { from: ['paused'], run: (cluster, node) => cluster.node(node).resume() },
};

const values = optionsOf(process.argv.slice(2));
const count = Number(values.nodes ?? NODES);
if (!Number.isInteger(count) || count < 1 || count > NODES_MAX) {
  process.stderr.write(`--nodes: expected a number of 1 to ${NODES_MAX}, got ${values.nodes}\n`);
  process.exit(2);
}
const folder = values.folder === undefined ? mkdtempSync(join(tmpdir(), 'troupe-cluster-')) : resolve(values.folder);
mkdirSync(folder, { recursive: true });

const authority = values.tls === true ? new Authority('authority of npm run cluster', Date.now()) : null;

const shown = new Map<number, string>();
const peerIds = new Map<number, number>();
const nodes: LocalNode[] = [];
let ending = false;
/** Assigned inside of functions, which the compiler doesn't follow. */
let cluster = null as LocalCluster | null;

process.on('SIGINT', interrupted);
process.on('SIGTERM', interrupted);
void watch();
await begin();

function optionsOf(args: string[]): {
  readonly nodes?: string | undefined;
  readonly folder?: string | undefined;
  readonly tls?: boolean | undefined;
} {
  try {
    const options = {
      nodes: { type: 'string' },
      folder: { type: 'string' },
      tls: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    } as const;
    const { values } = parseArgs({ args, options, strict: true, allowPositionals: false });
    if (values.help !== true) return values;
    process.stdout.write(USAGE);
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${textOf(error)}\n\n${USAGE}`);
    process.exit(2);
  }
}

async function begin(): Promise<void> {
  say(
    `Starting ${count === 1 ? 'one node' : `${count} nodes`}. Their data: ${folder}${values.folder === undefined ? ' (removed at the end; --folder keeps it)' : ''}`,
  );
  try {
    cluster = await LocalCluster.start({ nodes: count, folder, onNode: introduce, ...(authority === null ? {} : { authority }) });
  } catch (error) {
    if (ending) return;
    say(textOf(error));
    process.exitCode = 1;
    await end();
    return;
  }
  say('All nodes are ready. For another terminal:');
  for (const { number, url } of nodes) say(`export NODE_${number}=${url}`);
  if (authority !== null) sayAuthority(authority);
  say('Commands:');
  say(COMMANDS);
  const input = createInterface({ input: process.stdin });
  for await (const line of input) await obey(cluster, line);
  await end();
}

/** What clients need that are to trust the nodes. */
function sayAuthority({ cert }: Authority): void {
  const file = join(folder, 'cacert.pem');
  writeFileSync(file, cert);
  say(`export TROUPE_CA=${file}`);
  say('Clients trust the nodes by that file: curl --cacert $TROUPE_CA $NODE_1/cluster');
}

function introduce(node: LocalNode): void {
  nodes.push(node);
  say(`node ${node.number}  REST ${node.url}  gRPC 127.0.0.1:${node.grpcPort}  internal ${node.uri}`);
  say(`        log ${node.logFile}`);
}

async function obey(cluster: LocalCluster, line: string): Promise<void> {
  const command = parseClusterCommand(
    line,
    cluster.nodes.map(({ number }) => number),
  );
  try {
    await execute(cluster, command);
  } catch (error) {
    say(textOf(error));
  }
}

async function execute(cluster: LocalCluster, command: ScriptCommand): Promise<void> {
  switch (command.kind) {
    case 'nothing':
      return;
    case 'stop':
    case 'kill':
    case 'start':
    case 'pause':
    case 'resume':
      return changeProcess(cluster, command.kind, command.node);
    case 'add': {
      const { number, url } = await cluster.add();
      return say(`export NODE_${number}=${url}`);
    }
    case 'remove':
      await cluster.remove(command.node, command.force);
      return say(`node ${command.node} is no peer any more, and has ended; \`start ${command.node}\` lets it join as a new one`);
    case 'partition':
      cluster.partition(...command.groups);
      return say(`only nodes of one group reach each other: ${command.groups.map((group) => group.join(' ')).join(' | ')}`);
    case 'cut':
      cluster.cut(command.source, command.target);
      return say(`what node ${command.source} sends does not reach node ${command.target}`);
    case 'heal':
      cluster.heal();
      return say('all nodes reach each other');
    case 'status':
      return shown.clear();
    case 'help':
      return say(COMMANDS);
    case 'quit':
      return end();
    case 'wrong':
      return say(command.message);
    default:
      command satisfies never;
  }
}

/** Says so where the node's process is not in a state that the command changes. */
async function changeProcess(cluster: LocalCluster, kind: keyof typeof PROCESS_CHANGES, node: number): Promise<void> {
  const { from, run } = PROCESS_CHANGES[kind];
  const { state } = cluster.node(node);
  if (from.includes(state)) {
    await run(cluster, node);
    return;
  }
  const known = state === 'ended' ? 'is not running' : state === 'paused' ? 'is paused' : 'is running';
  say(`\`${kind} ${node}\` changes nothing: node ${node} ${known}`);
}

/** Says of each node how it is, whenever that changes. */
async function watch(): Promise<void> {
  while (!ending) {
    const states = await Promise.all(nodes.map(stateOf));
    if (ending) return;
    states.forEach((state, at) => {
      const node = nodes[at] as LocalNode;
      const line = stateLine(state, (peerId) => peerIds.get(peerId));
      if (shown.get(node.number) === line) return;
      shown.set(node.number, line);
      say(`${time()}  node ${node.number}: ${line}`);
    });
    await sleep(WATCH_MS);
  }
}

async function stateOf(node: LocalNode): Promise<LocalNodeState> {
  const [answer, ready] = await Promise.all([node.cluster(WATCH_MS * 4), node.isReady(WATCH_MS * 4)]);
  if (answer !== null) peerIds.set(answer.peer_id, node.number);
  const exit = node.exit === null ? null : (node.exit.signal ?? `status ${node.exit.code}`);
  return { process: node.state, exit, ready, answer };
}

/** The second time somebody does not want to wait: nodes are killed. */
function interrupted(): void {
  if (ending) for (const node of nodes) void node.kill();
  else void end();
}

async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  say('Ending all nodes.');
  if (cluster !== null) await cluster.close();
  else await Promise.allSettled(nodes.map((node) => node.stop()));
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(process.exitCode ?? 0);
}

function time(): string {
  return new Date().toISOString().slice(11, 23);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

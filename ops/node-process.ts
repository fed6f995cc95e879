/** A node as a child process of the demo, the benchmark and the process tests: started on free ports, watched, killed. */

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import * as http from 'node:http';
import * as https from 'node:https';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from './ports.js';
import type { ClientTls } from './rest-client.js';

export interface NodeProcessOptions {
  /** Folder for storage and snapshots; kept when the node ends, so that another one can be started on it. */
  readonly folder: string;
  /** Further variables (`SERVICE__…`); undefined takes one away. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** What its clients trust and show, where the environment switches `service.enable_tls` on. */
  readonly tls?: ClientTls;
  /** Options of Node itself, such as `--cpu-prof`; none holds a space. */
  readonly nodeArguments?: readonly string[];
  /** Command that runs the node, for example one that limits file sizes; it must replace itself by the node (`exec`). */
  readonly wrapper?: readonly string[];
  /** Called as soon as the process runs, long before it is ready. */
  readonly onSpawn?: (kill: (signal: NodeJS.Signals) => void) => void;
  /** Another program in the server's place: the launcher or the built server of another checkout (benchmark), or a stand-in (tests). */
  readonly program?: string;
  /** Milliseconds until `GET /readyz` must answer 200. */
  readonly readyTimeoutMs?: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RunningNode {
  readonly url: string;
  readonly port: number;
  readonly grpcPort: number;
  readonly pid: number;
  /** Milliseconds from the start of the process to the first 200 of `GET /readyz`. */
  readonly readyMs: number;
  /** Resolved when the process has ended. */
  readonly exited: Promise<Exit>;
  /** All it has printed so far. */
  log(): string;
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<Exit>;
}

const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 10;

/** The `troupe` command, which lies with the sources. It chooses the runtime as everywhere; what started it is npm's Node.js, or else this one. */
export const LAUNCHER = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'ops', 'launch.sh');

/** A node whose port somebody took in the moment before it listened is started again with others, so many times. */
const STARTS_MAX = 5;
const PORT_TAKEN = 'another process uses this address';

/** Starts a node and waits until it is ready. Rejects with what it printed when it ends or stays silent before that. */
export async function startNodeProcess(options: NodeProcessOptions): Promise<RunningNode> {
  for (let starts = 1; ; starts++) {
    const [port, grpcPort] = (await freePorts(2)) as [number, number];
    const started = performance.now();
    const { pid, exited, log, end } = launchNode({ ...options, port, grpcPort });
    try {
      await untilReady(port, exited, log, options.readyTimeoutMs ?? READY_TIMEOUT_MS, options.tls);
    } catch (error) {
      if (starts < STARTS_MAX && log().includes(PORT_TAKEN)) continue;
      throw error;
    }
    return {
      url: `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
      port,
      grpcPort,
      pid,
      readyMs: performance.now() - started,
      exited,
      log,
      end,
    };
  }
}

export interface LaunchOptions extends NodeProcessOptions {
  readonly port: number;
  readonly grpcPort: number;
  /** Options of the `troupe` command. */
  readonly options?: readonly string[];
  /** Where what it prints is appended; without it, memory. */
  readonly logFile?: string;
  /** Keeps signals of the terminal (Ctrl-C) from it: whoever launched it ends it. */
  readonly ownGroup?: boolean;
}

export type LaunchedNode = Pick<RunningNode, 'pid' | 'exited' | 'log' | 'end'> & {
  /** Sends a signal. */
  readonly signal: (signal: NodeJS.Signals) => void;
};

/** What the first line of a server's file set before there was a launcher. A launcher sets its own. */
const MEMORY_VARIABLES = { MALLOC_MMAP_THRESHOLD_: '65536', MALLOC_TRIM_THRESHOLD_: '131072' };
const MEMORY_ARGUMENTS = ['--max-semi-space-size=2'];

function isLauncher(file: string): boolean {
  return file.endsWith('.sh');
}

/** The words that start a launcher, or a program of Node.js with the settings of a launcher. */
function wordsOf(file: string, nodeArguments: readonly string[]): string[] {
  return isLauncher(file) ? [file] : [process.execPath, ...MEMORY_ARGUMENTS, ...nodeArguments, file];
}

/** Starts a node's process and does not wait for it. */
export function launchNode(options: LaunchOptions): LaunchedNode {
  const { program = LAUNCHER } = options;
  const environment = {
    ...(isLauncher(program) ? {} : MEMORY_VARIABLES),
    npm_node_execpath: process.execPath,
    ...process.env,
    TROUPE_NODE_OPTIONS: [process.env.TROUPE_NODE_OPTIONS ?? '', ...(options.nodeArguments ?? [])].join(' '),
    SERVICE__SERVICE__HOST: '127.0.0.1',
    SERVICE__SERVICE__HTTP_PORT: String(options.port),
    SERVICE__SERVICE__GRPC_PORT: String(options.grpcPort),
    SERVICE__STORAGE__STORAGE_PATH: join(options.folder, 'storage'),
    SERVICE__STORAGE__SNAPSHOTS_PATH: join(options.folder, 'snapshots'),
    ...options.environment,
  };
  const command = [...(options.wrapper ?? []), ...wordsOf(program, options.nodeArguments ?? []), ...(options.options ?? [])];
  const file = options.logFile === undefined ? null : openSync(options.logFile, 'a');
  const output = file ?? 'pipe';
  const child = spawn(command[0] as string, command.slice(1), {
    cwd: options.folder,
    env: environment,
    stdio: ['ignore', output, output],
    detached: options.ownGroup === true,
  });
  if (file !== null) closeSync(file);
  const printed: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => printed.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => printed.push(chunk));
  const exited = exitOf(child);
  liveChildren.add(child);
  options.onSpawn?.((signal) => child.kill(signal));
  void exited.then(() => liveChildren.delete(child));
  return {
    pid: child.pid as number,
    exited,
    log: () => (options.logFile === undefined ? Buffer.concat(printed).toString('utf8') : readFileSync(options.logFile, 'utf8')),
    signal: (signal) => child.kill(signal),
    end(signal) {
      child.kill(signal);
      return exited;
    },
  };
}

/** Children that must not outlive this process, whatever ends it. */
const liveChildren = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of liveChildren) child.kill('SIGKILL');
});

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((done, refuse) => {
    child.once('error', refuse);
    child.once('close', (code, signal) => done({ code, signal }));
  });
}

/** Waits until `GET /readyz` answers 200. Rejects with what the node printed when it ends before that, or after `timeoutMs`. */
export async function untilReady(
  port: number,
  exited: Promise<Exit>,
  log: () => string,
  timeoutMs: number,
  tls?: ClientTls,
): Promise<void> {
  let ended: Exit | null = null;
  void exited.then(
    (exit) => {
      ended = exit;
    },
    () => {
      ended = { code: null, signal: null };
    },
  );
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    if (ended !== null) throw new Error(`the node ended before it was ready: ${JSON.stringify(ended)}\n${log()}`);
    if ((await statusOf(port, '/readyz', tls)) === 200) return;
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
  throw new Error(`the node was not ready after ${timeoutMs} ms\n${log()}`);
}

/** Status of a GET, 0 when nobody answers. */
function statusOf(port: number, path: string, tls?: ClientTls): Promise<number> {
  return new Promise((done) => {
    const { get } = tls === undefined ? http : https;
    const request = get({ host: '127.0.0.1', port, path, agent: false, ...tls }, (response) => {
      response.resume();
      response.once('end', () => done(response.statusCode ?? 0));
    });
    request.once('error', () => done(0));
  });
}

/** strace as a process: it attaches to a node that runs, or starts one. */

import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Why nothing can be made to fail here; false where it can. */
export const noStrace: string | false = whyNot();

function whyNot(): string | false {
  if (process.platform !== 'linux') return 'faults are made with strace, which only Linux has';
  const tried = spawnSync('strace', ['-f', '-qq', '-o', '/dev/null', '--trace=openat', '--inject=openat:error=EIO:when=100', 'true']);
  if (tried.error !== undefined) return 'faults are made with strace: install it (Debian and Ubuntu: apt-get install strace)';
  return tried.status === 0
    ? false
    : `strace cannot trace here (a container needs the capability SYS_PTRACE): ${String(tried.stderr).trim()}`;
}

export interface Tracing {
  /** Lets the process go on without it. */
  detach(): Promise<void>;
}

const ATTACH_MS = 60_000;
const DETACH_MS = 5000;

/** Attaches to all threads of a process. Rejects with what strace said when it does not. */
export async function attach(pid: number, options: readonly string[]): Promise<Tracing> {
  const child = spawn('strace', [...options, '-p', String(pid)], { stdio: ['ignore', 'ignore', 'pipe'] });
  let told = '';
  child.stderr.on('data', (chunk: Buffer) => {
    told += chunk.toString();
  });
  const ended = new Promise<void>((done) => child.once('close', () => done()));
  const deadline = performance.now() + ATTACH_MS;
  while (!isTraced(pid)) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`strace does not trace process ${pid}: ${told}`);
    await sleep(5);
  }
  return {
    async detach() {
      child.kill('SIGINT');
      // It may wait for ever for a thread of a process that has crashed.
      const timer = setTimeout(() => child.kill('SIGKILL'), DETACH_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** All threads of it, or it is gone. */
function isTraced(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((thread) => tracerOf(`/proc/${pid}/task/${thread}/status`) !== 0);
  } catch {
    return true;
  }
}

/** The process that traces a process, 0 for none. */
function tracerOf(statusFile: string): number {
  return Number(/^TracerPid:\s+(\d+)$/m.exec(readFileSync(statusFile, 'utf8'))?.[1] ?? 0);
}

/** Calls that are not traced cost nothing; only a process that strace itself starts can be traced so. */
export const FROM_START = ['-D', '--seccomp-bpf'];

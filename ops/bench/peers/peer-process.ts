/** A library in a process of its own, which does one thing at a time: `peer.py`, or a node within `embedded.ts`. */

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { type Memory, memory } from '../common/measure.js';

/** Searches for a while, or each once. */
export interface PeerSlice {
  readonly searches: number;
  readonly seconds: number;
  /** Of all threads of the process. */
  readonly cpuSeconds: number;
  /** Ids that each query has found; null where the slice had a time. */
  readonly found: readonly (readonly number[])[] | null;
}

interface Hello {
  readonly hasFilters: boolean;
  /** Where it keeps its files. */
  readonly folder: string;
}

export interface Built {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

export type AskedOfPeer =
  | { readonly kind: 'build' }
  /** seconds: 0 for each query once. filter: its name. */
  | { readonly kind: 'search'; readonly ef: number; readonly filter: string | null; readonly seconds: number };

export class PeerProcess {
  private readonly lines: AsyncIterator<string>;

  private constructor(
    readonly name: string,
    private readonly child: ChildProcessByStdio<Writable, Readable, null>,
    reader: Interface,
  ) {
    this.lines = reader[Symbol.asyncIterator]();
  }

  hasFilters = false;
  folder = '';
  /** With the library loaded, and nothing in it. */
  private empty: Memory | null = null;

  /** folder: that of the data set, where the library gets a folder of its own. */
  static async start(name: string, command: string, argv: readonly string[], folder: string): Promise<PeerProcess> {
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
    const child = spawn(command, argv, { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'], env });
    const peer = new PeerProcess(name, child, createInterface({ input: child.stdout }));
    const hello = await peer.next<Hello>();
    peer.hasFilters = hello.hasFilters;
    peer.folder = hello.folder;
    peer.empty = memory(peer.pid);
    return peer;
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Puts all points in and builds all indexes; their files are written then. */
  build(): Promise<Built> {
    return this.ask({ kind: 'build' });
  }

  search(ef: number, filter: string | null, seconds: number): Promise<PeerSlice> {
    return this.ask({ kind: 'search', ef, filter, seconds });
  }

  /** What the process has more than when its library was loaded. */
  grown(): Memory | null {
    const now = memory(this.pid);
    const { empty } = this;
    if (now === null || empty === null) return null;
    const more = (key: keyof Memory) => now[key] - empty[key];
    return { rss: more('rss'), anonymous: more('anonymous'), file: more('file'), shared: more('shared') };
  }

  end(): void {
    this.child.kill('SIGKILL');
  }

  private ask<Answer>(asked: AskedOfPeer): Promise<Answer> {
    this.child.stdin.write(`${JSON.stringify(asked)}\n`);
    return this.next();
  }

  private async next<Answer>(): Promise<Answer> {
    const { done, value } = await this.lines.next();
    if (done === true) throw new Error(`${this.name} ended without an answer; what it says is above`);
    return JSON.parse(value) as Answer;
  }
}

/** One node of a local cluster: its addresses, its process, what it says of itself. */

import { join } from 'node:path';
import { type Exit, type LaunchedNode, launchNode } from '../node-process.js';
import { type ClientTls, RestClient } from '../rest-client.js';
import type { NodeProxy } from './proxy.js';

export interface NodePlace {
  /** From 1. */
  readonly number: number;
  readonly folder: string;
  readonly port: number;
  readonly grpcPort: number;
  readonly internalPort: number;
}

export type ProcessState = 'running' | 'paused' | 'ended';

/** `GET /cluster` of a node in a cluster. Source: contract, `ClusterStatus`. */
export interface ClusterAnswer {
  readonly status: 'enabled';
  readonly peer_id: number;
  readonly peers: Readonly<Record<string, { readonly uri: string }>>;
  readonly raft_info: {
    readonly term: number;
    readonly commit: number;
    readonly pending_operations: number;
    readonly leader: number | null;
    readonly role: string | null;
    readonly is_voter: boolean;
  };
  readonly consensus_thread_status: { readonly consensus_thread_status: string; readonly err?: string };
  readonly message_send_failures: Readonly<Record<string, unknown>>;
}

/** What each start of a node is given. */
export interface LocalNodeSettings {
  /** Further variables. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly nodeArguments: readonly string[];
  /** What its clients trust; null: it has no TLS. */
  readonly tls: ClientTls | null;
  /** What its clients show; null: nothing. */
  readonly apiKey: string | null;
  /** Another program in the server's place (tests), or another release's server (benchmarks). */
  readonly program: string | undefined;
}

export class LocalNode {
  readonly number: number;
  readonly port: number;
  readonly grpcPort: number;
  readonly internalPort: number;
  readonly folder: string;
  /** Of its internal port. */
  readonly uri: string;
  readonly url: string;
  readonly logFile: string;
  readonly client: RestClient;
  private launched: LaunchedNode | null = null;
  private current: ProcessState = 'ended';
  private lastExit: Exit | null = null;

  constructor(
    place: NodePlace,
    readonly proxy: NodeProxy,
    private readonly settings: LocalNodeSettings,
  ) {
    this.number = place.number;
    this.port = place.port;
    this.grpcPort = place.grpcPort;
    this.internalPort = place.internalPort;
    this.folder = place.folder;
    this.uri = `http://127.0.0.1:${place.internalPort}`;
    this.url = `${settings.tls === null ? 'http' : 'https'}://127.0.0.1:${place.port}`;
    this.logFile = join(place.folder, 'node.log');
    const { apiKey, tls } = settings;
    const headers = apiKey === null ? {} : { 'api-key': apiKey };
    this.client = new RestClient({
      host: '127.0.0.1',
      port: place.port,
      prefix: '',
      headers: headers as Record<string, string>,
      tls,
      silenceMs: 0,
    });
  }

  get state(): ProcessState {
    return this.current;
  }

  /** How it ended last; null before that. */
  get exit(): Exit | null {
    return this.lastExit;
  }

  get pid(): number | null {
    return this.current === 'ended' ? null : (this.launched?.pid ?? null);
  }

  /** Resolves when the process that runs now has ended. */
  get exited(): Promise<Exit> {
    return this.launched?.exited ?? Promise.resolve({ code: null, signal: null });
  }

  log(): string {
    return this.launched?.log() ?? '';
  }

  /** options: of the `troupe` command, beside `--uri`. Nothing happens when it runs. */
  launch(options: readonly string[]): void {
    if (this.current !== 'ended') return;
    const launched = launchNode({
      folder: this.folder,
      port: this.port,
      grpcPort: this.grpcPort,
      logFile: this.logFile,
      ownGroup: true,
      options: ['--uri', this.uri, ...options],
      nodeArguments: this.settings.nodeArguments,
      environment: {
        SERVICE__CLUSTER__ENABLED: 'true',
        SERVICE__CLUSTER__P2P__PORT: String(this.internalPort),
        SERVICE_URI: undefined,
        SERVICE_BOOTSTRAP: undefined,
        ...PROXY_VARIABLES,
        grpc_proxy: this.proxy.url,
        ...this.settings.environment,
      },
      ...(this.settings.program === undefined ? {} : { program: this.settings.program }),
    });
    this.launched = launched;
    this.current = 'running';
    const ended = (exit: Exit): void => {
      if (this.launched !== launched) return;
      this.current = 'ended';
      this.lastExit = exit;
    };
    launched.exited.then(ended, () => ended({ code: null, signal: null }));
  }

  /** SIGTERM and wait; a node that does not end in time is killed. */
  async stop(timeoutMs = 40_000): Promise<Exit> {
    if (this.current === 'paused') this.resume();
    const timer = setTimeout(() => this.launched?.signal('SIGKILL'), timeoutMs);
    try {
      return await this.end('SIGTERM');
    } finally {
      clearTimeout(timer);
    }
  }

  kill(): Promise<Exit> {
    return this.end('SIGKILL');
  }

  /** SIGSTOP: it stands still and keeps its connections. */
  pause(): void {
    if (this.current !== 'running') return;
    this.launched?.signal('SIGSTOP');
    this.current = 'paused';
  }

  resume(): void {
    if (this.current !== 'paused') return;
    this.launched?.signal('SIGCONT');
    this.current = 'running';
  }

  /** Null when it does not answer, or not within `timeoutMs`. */
  async cluster(timeoutMs = 2000): Promise<ClusterAnswer | null> {
    const answer = await this.ask('/cluster', timeoutMs);
    const result = (answer?.body as { result?: ClusterAnswer } | undefined)?.result;
    return result?.status === 'enabled' ? result : null;
  }

  async isReady(timeoutMs = 2000): Promise<boolean> {
    return (await this.ask('/readyz', timeoutMs))?.status === 200;
  }

  /** Lets connections go; the process has ended. */
  async close(): Promise<void> {
    this.client.close();
    await this.proxy.close();
  }

  private async end(signal: NodeJS.Signals): Promise<Exit> {
    if (this.current === 'ended' || this.launched === null) return this.lastExit ?? { code: null, signal: null };
    return this.launched.end(signal);
  }

  private async ask(path: string, timeoutMs: number): Promise<{ readonly status: number; readonly body: unknown } | null> {
    if (this.current !== 'running') return null;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), timeoutMs);
    });
    return Promise.race([this.client.call('GET', path).catch(() => null), late]).finally(() => clearTimeout(timer));
  }
}

/** Variables by which somebody's machine would lead channels elsewhere, or past the proxy. */
const PROXY_VARIABLES = {
  https_proxy: undefined,
  http_proxy: undefined,
  no_grpc_proxy: undefined,
  no_proxy: undefined,
} as const;

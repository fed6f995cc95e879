/**
 * The consensus log on disk, kept by a thread of its own.
 *
 * Its rules are ConsLog-C1 to ConsLog-C3 in storage/README.md. Writes that wait while the disk works become one transaction.
 */

import { existsSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import { rethrowBroken } from '../../protocols/invariant.js';
import { type ConsensusStore, type ConsensusWrite, NOTHING_STORED, type StoredConsensus } from '../../protocols/model/consensus.js';
import { initChecksum } from '../disk/checksum.js';
import { syncFolderNow } from '../disk/file.js';
import { requireThreadAddresses } from '../disk/machine.js';
import { WORKER_ARGUMENTS } from '../pool/early-thread.js';
import { SILENCE_MS, ThreadWatch, type WatchLimits, watchLimits } from '../pool/thread-watch.js';
import { silenceEvent, type WatchedThread, type WorkerDepth, type WorkerEvent } from '../pool/worker-slots.js';
import { steadyNowMs } from '../threads/clock.js';
import { threadEntry } from '../threads/entries.js';
import { changesOf, type Held, packChanges } from './changes.js';
import type { FromKeeper, ToKeeper } from './messages.js';
import { NO_ENTRIES } from './records.js';

/** Bytes of waiting writes that become one transaction; one that is larger goes alone. */
const GROUP_BYTES_MAX = 16 << 20;
const SMALL_YOUNG_GENERATION = { maxYoungGenerationSizeMb: 2 };

interface Waiting {
  readonly changes: Uint8Array;
  readonly settle: Settle<void>;
}

interface Settle<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}

/** Folder of the log within a node's storage. */
export function consensusFolder(storagePath: string): string {
  return path.join(storagePath, 'consensus');
}

/** Forgets the log and with it who this node was. A crash on the way leaves either all of it or nothing. Errors: `storage`. */
export function forgetConsensus(storagePath: string): void {
  const folder = consensusFolder(storagePath);
  const condemned = `${folder}.old`;
  try {
    rmSync(condemned, { recursive: true, force: true });
    if (!existsSync(folder)) return;
    renameSync(folder, condemned);
    syncFolderNow(storagePath);
    rmSync(condemned, { recursive: true, force: true });
  } catch (error) {
    throw new TroupeError('storage', `${folder}: cannot be removed (${error instanceof Error ? error.message : String(error)})`, {
      cause: error,
    });
  }
}

export class ConsensusLog implements ConsensusStore, WatchedThread {
  private keeper: Keeper | null = null;
  private held: Held = { range: NO_ENTRIES, snapshotIndex: 0, hardState: NOTHING_STORED.hardState };
  private waiting: Waiting[] = [];
  /** A transaction is under way; settles when it has ended, either way. */
  private working: Promise<void> | null = null;
  /** Why nothing is written until `load`. */
  private broken: TroupeError | null = new TroupeError('storage', 'the consensus log is not loaded');

  /** Loads and closings come one after the other: two threads that open one log at once would be one too many. */
  private turn: Promise<unknown> = Promise.resolve();
  /** Threads that were lost since the start, and why the last one was. */
  private readonly losses: Losses = { count: 0, last: null };
  private readonly limits: WatchLimits;

  /**
   * storagePath: the node's; the log lies in its folder `consensus`, which is made where there is none.
   * verify: tells what is damaged in that folder, null for nothing (ConsLog-C3); `verifyConsensus` asks a process of its own.
   * silenceMs: how long the thread may give no sign of life while something waits for it. entry: of a thread other than the built one (tests).
   */
  constructor(
    private readonly storagePath: string,
    private readonly verify: (folder: string) => Promise<string | null>,
    silenceMs = SILENCE_MS,
    private readonly entry = threadEntry('keeper'),
  ) {
    this.limits = watchLimits(silenceMs);
  }

  /** A thread that does not answer is ended: what waits for it fails, and `load` begins another one. */
  look(tell: (event: WorkerEvent) => void): void {
    this.keeper?.look(tell);
  }

  depth(nowMs: number): WorkerDepth | null {
    return this.keeper?.depth(nowMs, this.losses) ?? null;
  }

  /** Reads again what a log holds that works; opens it anew when it does not. */
  load(): Promise<StoredConsensus> {
    return this.inTurn(() => this.loadNow());
  }

  private inTurn<T>(action: () => Promise<T>): Promise<T> {
    const result = this.turn.then(action);
    this.turn = result.catch(() => {});
    return result;
  }

  private async loadNow(): Promise<StoredConsensus> {
    while (this.working !== null) await this.working;
    if (this.broken === null && this.keeper !== null) return this.read(this.keeper);
    await this.stop(new TroupeError('storage', 'the consensus log is being loaded again'));
    const folder = consensusFolder(this.storagePath);
    await initChecksum();
    const damaged = await this.verify(folder);
    if (damaged !== null) throw withRecovery(damaged, folder);
    this.keeper = new Keeper(this.entry, folder, this.limits, this.losses);
    return this.read(this.keeper);
  }

  async write(write: ConsensusWrite): Promise<void> {
    if (this.broken !== null) throw this.broken;
    let changes: Uint8Array;
    try {
      const made = changesOf(write, this.held);
      if (made.changes.length === 0) return this.settled();
      changes = packChanges(made.changes);
      this.held = made.held;
    } catch (error) {
      // A rule is broken, and whatever follows would be built on it.
      this.broken = new TroupeError('internal', `consensus log: ${errorFacts(error).detail}`, { cause: error });
      rethrowBroken(error);
      throw this.broken;
    }
    await new Promise<void>((resolve, reject) => {
      this.waiting.push({ changes, settle: { resolve, reject } });
      this.working ??= this.work();
    });
  }

  close(): Promise<void> {
    return this.inTurn(async () => {
      while (this.working !== null) await this.working;
      await this.stop(new TroupeError('storage', 'the consensus log is closed'));
    });
  }

  private async read(keeper: Keeper): Promise<StoredConsensus> {
    try {
      const reply = await keeper.ask({ kind: 'load' });
      if (reply.kind !== 'loaded') throw new Error(`\`${reply.kind}\` instead of what is stored`);
      const { stored } = reply;
      const [first, last] = [stored.entries[0], stored.entries.at(-1)];
      this.held = {
        range: first === undefined || last === undefined ? NO_ENTRIES : { first: first.index, last: last.index },
        snapshotIndex: stored.snapshot?.index ?? 0,
        hardState: stored.hardState,
      };
      this.broken = null;
      return stored;
    } catch (error) {
      const folder = consensusFolder(this.storagePath);
      throw withRecovery(`${folder}: ${errorFacts(error).detail}`, folder);
    }
  }

  /** Once all writes before it are on disk. */
  private async settled(): Promise<void> {
    while (this.working !== null) await this.working;
    if (this.broken !== null) throw this.broken;
  }

  private async work(): Promise<void> {
    while (this.waiting.length > 0) {
      const group = this.takeGroup();
      try {
        const changes = group.map((waiting) => waiting.changes);
        await (this.keeper as Keeper).ask(
          { kind: 'write', changes },
          changes.map((bytes) => bytes.buffer as ArrayBuffer),
        );
        for (const { settle } of group) settle.resolve();
      } catch (error) {
        this.refuseAll(errorFromFacts(errorFacts(error)), group);
      }
    }
    this.working = null;
  }

  private takeGroup(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { changes } of this.waiting) {
      bytes += changes.length;
      if (count > 0 && bytes > GROUP_BYTES_MAX) break;
      count++;
    }
    return this.waiting.splice(0, count);
  }

  private refuseAll(error: TroupeError, group: readonly Waiting[]): void {
    this.broken = error;
    const refused = [...group, ...this.waiting];
    this.waiting = [];
    for (const { settle } of refused) settle.reject(error);
  }

  private async stop(reason: TroupeError): Promise<void> {
    this.broken = reason;
    const { keeper } = this;
    this.keeper = null;
    this.refuseAll(reason, []);
    await keeper?.end();
  }
}

/** Written by the thread that is lost, read for telemetry. */
interface Losses {
  count: number;
  last: string | null;
}

interface Asked {
  readonly kind: ToKeeper['kind'];
  readonly bytes: number;
  readonly settle: Settle<FromKeeper>;
}

const THREAD_NAME = 'consensus-log';

/** The thread, and who waits for its answers: they come in the order of the questions. */
class Keeper {
  private readonly worker: Worker;
  private readonly watch: ThreadWatch;
  private readonly asked: Asked[] = [];
  private readonly gone: Promise<void>;
  private readonly startedMs = steadyNowMs();
  private processed = 0;
  private isEnding = false;
  private lost: TroupeError | null = null;

  constructor(
    entry: URL,
    folder: string,
    limits: WatchLimits,
    private readonly losses: Losses,
  ) {
    requireThreadAddresses(THREAD_NAME);
    this.watch = new ThreadWatch(limits);
    this.worker = new Worker(entry, {
      name: THREAD_NAME,
      workerData: { folder, pulse: this.watch.data },
      transferList: [this.watch.data.port],
      resourceLimits: SMALL_YOUNG_GENERATION,
      ...(WORKER_ARGUMENTS === undefined ? {} : { execArgv: WORKER_ARGUMENTS }),
    });
    this.worker.on('message', (reply: FromKeeper) => {
      const settle = this.asked.shift()?.settle;
      this.processed++;
      if (reply.kind === 'failed') settle?.reject(errorFromFacts(reply.error));
      else settle?.resolve(reply);
    });
    this.worker.on('error', (error) => this.lose(error.message));
    this.gone = new Promise((resolve) => {
      this.worker.on('exit', (code) => {
        this.watch.close();
        this.lose(`it ended with ${code}`);
        resolve();
      });
    });
  }

  ask(message: ToKeeper, transfer: ArrayBuffer[] = []): Promise<FromKeeper> {
    if (this.lost !== null) return Promise.reject(this.lost);
    return new Promise((resolve, reject) => {
      const bytes = transfer.reduce((sum, { byteLength }) => sum + byteLength, 0);
      this.asked.push({ kind: message.kind, bytes, settle: { resolve, reject } });
      this.worker.postMessage(message, transfer);
    });
  }

  look(tell: (event: WorkerEvent) => void): void {
    if (this.lost !== null) return;
    const [first] = this.asked;
    const finding = this.watch.look(first === undefined ? null : `${first.kind} of the consensus log`);
    if (finding === 'terminate') void this.worker.terminate();
    else if (finding !== 'fine') tell(silenceEvent(THREAD_NAME, 'keeper', finding, this.watch));
  }

  depth(nowMs: number, losses: Losses): WorkerDepth {
    const stuck = this.lost === null ? this.watch.silence : null;
    return {
      name: THREAD_NAME,
      kind: 'keeper',
      begun: true,
      up: this.lost === null && stuck === null,
      stuck,
      depth: this.asked.length,
      queuedBytes: this.asked.reduce((sum, { bytes }) => sum + bytes, 0),
      processed: this.processed,
      restarts: losses.count,
      uptimeMs: nowMs - this.startedMs,
      lastError: losses.last,
    };
  }

  /** Resolves when the thread is gone. */
  async end(): Promise<void> {
    this.isEnding = true;
    await this.ask({ kind: 'close' }).catch(() => this.worker.terminate());
    await this.gone;
  }

  private lose(reason: string): void {
    if (this.lost === null && !this.isEnding) {
      this.losses.count++;
      this.losses.last = reason;
    }
    this.lost ??= new TroupeError('storage', `the thread that keeps the consensus log is gone: ${reason}`);
    for (const { settle } of this.asked.splice(0)) settle.reject(this.lost);
  }
}

/** where: what is wrong, with its path. */
function withRecovery(where: string, folder: string): TroupeError {
  return new TroupeError(
    'storage',
    `${where}. The consensus log cannot be used. To recover: stop this node; remove its peer at another peer (\`DELETE /cluster/peer/{peer_id}?force=true\`); delete ${folder}, or start with \`--reinit\`; let the node join again with \`--bootstrap\` and the address of a peer, where its collections are set aside, not deleted. The only node of a cluster founds it anew with \`--reinit\`, \`--uri\` and its address`,
  );
}

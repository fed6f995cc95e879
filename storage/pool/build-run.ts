/** One build from start to end: the writer freezes the sources, a builder's thread makes the files, the writer publishes them. */

import { Worker } from 'node:worker_threads';
import { errorFromFacts, TroupeError } from '../../protocols/errors.js';
import { requireThreadAddresses } from '../disk/machine.js';
import { heapMegabytes, type MemoryBudget } from '../memory/budget.js';
import { steadyNowMs } from '../threads/clock.js';
import { threadEntry } from '../threads/entries.js';
import type { BuildJob, BuildReport, BuildResult, BuildSources, FromBuilder, ReplicaKey, ToBuilder } from '../threads/messages.js';
import { WORKER_ARGUMENTS } from './early-thread.js';
import { ThreadWatch, type WatchLimits } from './thread-watch.js';
import { silenceEvent, type WorkerDepth, type WorkerEvent } from './worker-slots.js';
import type { WriterPool } from './writer-pool.js';

/** What to build: see `BuildJob`. */
export interface BuildOrder {
  readonly plan: BuildJob['plan'];
  readonly segments: readonly number[];
  readonly missingFields: readonly string[];
  /** Segments to make. Default: one. */
  readonly results?: number;
  readonly withGraph: boolean;
  readonly threads: number;
  readonly niceness: number;
}

export interface BuildProgress {
  readonly done: number;
  readonly total: number;
  readonly stage: string;
}

interface Builder {
  readonly name: string;
  readonly niceness: number;
  /** `steadyNowMs()`. */
  readonly startedMs: number;
  readonly watch: ThreadWatch;
  readonly worker: Worker;
  /** What it builds; null: it waits for the next build. */
  call: string | null;
  /** Builds that it has done. */
  processed: number;
}

/** How long a builder may take to give up. */
const CANCEL_GRACE_MS = 5_000;
/**
 * Where a build begins so soon after another one, as in a stream of points, its thread stays for the next one for as long: to begin, a thread takes some
 * 0.1 s of CPU, and V8 has compiled nothing in it that builds need.
 */
const STAYS_MS = 15_000;

export class BuildRuns {
  private readonly entry: URL;
  /** Builders by name. */
  private readonly builders = new Map<string, Builder>();
  private nextBuilder = 1;
  /** The builder that waits for the next build, and when it waits no longer. */
  private resting: { readonly builder: Builder; readonly ends: NodeJS.Timeout } | null = null;
  private lastEndMs = Number.NEGATIVE_INFINITY;
  private isClosed = false;

  /** entry: worker entry other than the built one. */
  constructor(
    private readonly writers: WriterPool,
    entry: URL | undefined,
    private readonly budget: MemoryBudget,
    private readonly tellWorker: (event: WorkerEvent) => void,
    private readonly watchLimits: WatchLimits,
  ) {
    this.entry = entry ?? threadEntry('builder');
  }

  /** See `EnginePool.build`. */
  async build(key: ReplicaKey, plan: BuildOrder, onProgress: (progress: BuildProgress) => void, signal: AbortSignal): Promise<BuildReport> {
    const replica = this.writers.openReplicaOf(key);
    if (signal.aborted) throw cancelled();
    const { value } = await this.writers.call(replica, {
      kind: 'beginBuild',
      id: 0,
      key,
      segments: plan.segments,
      results: plan.results ?? 1,
    });
    const sources = value as BuildSources;
    try {
      const job: BuildJob = {
        ...sources,
        plan: plan.plan,
        missingFields: plan.missingFields,
        withGraph: plan.withGraph,
        threads: plan.threads,
        niceness: plan.niceness,
      };
      const result = await this.runBuilder(job, onProgress, signal);
      await this.writers.call(replica, { kind: 'publishBuild', id: 0, key, result });
      return result.report;
    } catch (error) {
      // The sources must take part in later builds again. Where the writer is gone too there is nothing to give up.
      await this.writers.call(replica, { kind: 'abandonBuild', id: 0, key, segments: plan.segments }).catch(() => {});
      throw error;
    }
  }

  /** Ends the thread that waits for a build. */
  async close(): Promise<void> {
    this.isClosed = true;
    const builder = this.takeResting();
    if (builder !== null) await this.end(builder);
  }

  /** Looks whether builders are alive. */
  look(): void {
    for (const [name, { call, watch, worker }] of this.builders) {
      const finding = watch.look(call);
      if (finding === 'terminate') void worker.terminate();
      else if (finding !== 'fine') this.tellWorker(silenceEvent(name, 'builder', finding, watch));
    }
  }

  depths(nowMs: number): WorkerDepth[] {
    return [...this.builders.values()].map(({ call, name, processed, startedMs, watch }) => ({
      name,
      kind: 'builder',
      begun: true,
      up: watch.silence === null,
      stuck: watch.silence,
      depth: call === null ? 0 : 1,
      queuedBytes: 0,
      processed,
      restarts: 0,
      uptimeMs: nowMs - startedMs,
      lastError: null,
    }));
  }

  private async runBuilder(job: BuildJob, onProgress: (progress: BuildProgress) => void, signal: AbortSignal): Promise<BuildResult> {
    if (signal.aborted) throw cancelled();
    const stays = this.builders.size > 0 || steadyNowMs() - this.lastEndMs < STAYS_MS;
    const builder = this.takeResting(job.niceness) ?? this.begin(job.niceness);
    builder.call = `a build of ${job.spec.key}`;
    let isDone = false;
    try {
      const result = await outcomeOf(builder, { kind: 'build', job, stays }, onProgress, signal);
      isDone = true;
      return result;
    } finally {
      builder.call = null;
      builder.processed++;
      this.lastEndMs = steadyNowMs();
      if (isDone && stays && this.resting === null && !this.isClosed) this.rest(builder);
      else await this.end(builder);
    }
  }

  private begin(niceness: number): Builder {
    const name = `builder-${this.nextBuilder++}`;
    requireThreadAddresses(name);
    const watch = new ThreadWatch(this.watchLimits);
    const worker = new Worker(this.entry, {
      name,
      workerData: { pulse: watch.data },
      transferList: [watch.data.port],
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes(this.budget, 'builder') },
      ...(WORKER_ARGUMENTS === undefined ? {} : { execArgv: WORKER_ARGUMENTS }),
    });
    const builder: Builder = { name, niceness, startedMs: steadyNowMs(), watch, worker, call: null, processed: 0 };
    this.builders.set(name, builder);
    // While it builds, the build is told of both.
    worker.on('error', () => {});
    worker.on('exit', () => {
      this.builders.delete(name);
      if (this.resting?.builder === builder) this.takeResting();
    });
    this.tellWorker({ name, kind: 'builder', event: 'started', error: null });
    return builder;
  }

  private rest(builder: Builder): void {
    const ends = setTimeout(() => {
      this.resting = null;
      void this.end(builder);
    }, STAYS_MS);
    ends.unref();
    builder.worker.unref();
    this.resting = { builder, ends };
  }

  /** The builder that rests, if it has this priority, which a thread cannot raise. Default: any. */
  private takeResting(niceness?: number): Builder | null {
    const { resting } = this;
    if (resting === null || (niceness !== undefined && resting.builder.niceness !== niceness)) return null;
    clearTimeout(resting.ends);
    this.resting = null;
    resting.builder.worker.ref();
    return resting.builder;
  }

  private async end({ name, watch, worker }: Builder): Promise<void> {
    this.builders.delete(name);
    watch.close();
    await worker.terminate();
  }
}

/** Has a builder do a job. */
function outcomeOf(
  { worker }: Builder,
  job: ToBuilder,
  onProgress: (progress: BuildProgress) => void,
  signal: AbortSignal,
): Promise<BuildResult> {
  let grace: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    worker.postMessage({ kind: 'cancel' } satisfies ToBuilder);
    grace = setTimeout(() => void worker.terminate(), CANCEL_GRACE_MS);
  };
  const ended = new AbortController();
  return new Promise<BuildResult>((resolve, reject) => {
    const listen = <Told>(event: string, take: (told: Told) => void): void => {
      worker.on(event, take);
      ended.signal.addEventListener('abort', () => worker.off(event, take));
    };
    listen('message', (message: FromBuilder) => {
      switch (message.kind) {
        case 'progress':
          return onProgress({ done: message.done, total: message.total, stage: message.stage });
        case 'result':
          return resolve(message.result);
        case 'cancelled':
          return reject(cancelled());
        case 'error':
          return reject(errorFromFacts(message.error));
        default:
          assertNever(message);
      }
    });
    listen('error', (error: unknown) =>
      reject(
        new TroupeError('internal', `the builder failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error }),
      ),
    );
    listen('exit', (code: number) =>
      reject(signal.aborted ? cancelled() : new TroupeError('internal', `the builder ended with code ${code}`)),
    );
    signal.addEventListener('abort', onAbort, { once: true });
    worker.postMessage(job);
  }).finally(() => {
    ended.abort();
    signal.removeEventListener('abort', onAbort);
    clearTimeout(grace);
  });
}

function cancelled(): TroupeError {
  return new TroupeError('unavailable', 'the build was cancelled');
}

function assertNever(value: never): never {
  throw new Error(`unexpected message ${JSON.stringify(value)}`);
}

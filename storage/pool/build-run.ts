/** One build from start to end: the writer freezes the sources, a builder's thread makes the files, the writer publishes them. */

import { Worker } from 'node:worker_threads';
import { errorFromFacts, TroupeError } from '../../protocols/errors.js';
import { requireThreadAddresses } from '../disk/machine.js';
import { heapMegabytes, type MemoryBudget } from '../memory/budget.js';
import { steadyNowMs } from '../threads/clock.js';
import { threadEntry } from '../threads/entries.js';
import type { BuildJob, BuildReport, BuildResult, BuildSources, FromBuilder, ReplicaKey } from '../threads/messages.js';
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
  readonly call: string;
  /** `steadyNowMs()`. */
  readonly startedMs: number;
  readonly watch: ThreadWatch;
  readonly worker: Worker;
}

/** How long a builder may take to give up. */
const CANCEL_GRACE_MS = 5_000;

export class BuildRuns {
  private readonly entry: URL;
  /** Builders that run, by name. */
  private readonly builders = new Map<string, Builder>();
  private nextBuilder = 1;

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

  /** Looks whether builders are alive. */
  look(): void {
    for (const [name, { call, watch, worker }] of this.builders) {
      const finding = watch.look(call);
      if (finding === 'terminate') void worker.terminate();
      else if (finding !== 'fine') this.tellWorker(silenceEvent(name, 'builder', finding, watch));
    }
  }

  depths(nowMs: number): WorkerDepth[] {
    return [...this.builders].map(([name, { startedMs, watch }]) => ({
      name,
      kind: 'builder',
      begun: true,
      up: watch.silence === null,
      stuck: watch.silence,
      depth: 1,
      queuedBytes: 0,
      processed: 0,
      restarts: 0,
      uptimeMs: nowMs - startedMs,
      lastError: null,
    }));
  }

  private runBuilder(job: BuildJob, onProgress: (progress: BuildProgress) => void, signal: AbortSignal): Promise<BuildResult> {
    if (signal.aborted) return Promise.reject(cancelled());
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
    this.builders.set(name, { call: `a build of ${job.spec.key}`, startedMs: steadyNowMs(), watch, worker });
    this.tellWorker({ name, kind: 'builder', event: 'started', error: null });
    let grace: NodeJS.Timeout | undefined;
    const onAbort = (): void => {
      worker.postMessage({ kind: 'cancel' });
      grace = setTimeout(() => void worker.terminate(), CANCEL_GRACE_MS);
    };
    const run = new Promise<BuildResult>((resolve, reject) => {
      worker.on('message', (message: FromBuilder) => {
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
      worker.on('error', (error) =>
        reject(
          new TroupeError('internal', `the builder failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error }),
        ),
      );
      worker.on('exit', (code) =>
        reject(signal.aborted ? cancelled() : new TroupeError('internal', `the builder ended with code ${code}`)),
      );
      signal.addEventListener('abort', onAbort, { once: true });
      worker.postMessage({ kind: 'build', job });
    });
    return run.finally(() => {
      signal.removeEventListener('abort', onAbort);
      clearTimeout(grace);
      this.builders.delete(name);
      watch.close();
      return worker.terminate();
    });
  }
}

function cancelled(): TroupeError {
  return new TroupeError('unavailable', 'the build was cancelled');
}

function assertNever(value: never): never {
  throw new Error(`unexpected message ${JSON.stringify(value)}`);
}

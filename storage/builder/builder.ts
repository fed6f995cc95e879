/** Worker entry: carries out a `BuildJob` at a low OS priority, and ends or waits for the next one. See `ToBuilder` and `FromBuilder`. */

import { setImmediate } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { type ErrorFacts, errorFacts } from '../../protocols/errors.js';
import { initChecksum } from '../disk/checksum.js';
import { filePages } from '../memory/system-calls.js';
import { collectGarbage } from '../threads/collect-garbage.js';
import { lowerPriority } from '../threads/low-priority.js';
import type { BuildJob, BuildResult, FromBuilder, ToBuilder } from '../threads/messages.js';
import { beat } from '../threads/pulse.js';
import { buildMissingFields } from './build-fields.js';
import { buildSegments } from './build-segment.js';
import { BuildCancelled, type BuildControl } from './control.js';
import { GraphCrew } from './graph-crew.js';
import { openPayloadSource } from './payload-source.js';

if (parentPort === null) throw new Error('builder.js is a worker');
const port = parentPort;

/** Progress is posted this often at most. */
const PROGRESS_MS = 100;

let cancelled = false;
let working = false;

port.on('message', (message: ToBuilder) => {
  switch (message.kind) {
    case 'cancel':
      cancelled = true;
      return;
    case 'build':
      if (working) throw new Error('a builder does one job after the other');
      working = true;
      cancelled = false;
      void work(message.job, message.stays);
      return;
    default:
      throw new Error(`unknown message ${JSON.stringify(message satisfies never)}`);
  }
});

async function work(job: BuildJob, stays: boolean): Promise<void> {
  const outcome = await outcomeOf(job);
  working = false;
  post(outcome);
  if (!stays) port.close();
  // What it has built would stay in memory with it. Only now, as its caller waits for the outcome.
  else setTimeout(collectGarbage);
}

async function outcomeOf(job: BuildJob): Promise<FromBuilder> {
  try {
    lowerPriority(job.niceness);
    await initChecksum();
    return { kind: 'result', result: await build(job) };
  } catch (error) {
    return error instanceof BuildCancelled ? { kind: 'cancelled' } : { kind: 'error', error: factsOf(error) };
  }
}

/** What the disk refuses (`ENOSPC`, `EIO`…) is an expected failure, with the system's own words. */
function factsOf(error: unknown): ErrorFacts {
  const { syscall, message } = error as NodeJS.ErrnoException;
  return syscall === undefined ? errorFacts(error) : { code: 'storage', detail: message };
}

async function build(job: BuildJob): Promise<BuildResult> {
  let crew: Promise<GraphCrew> | null = null;
  const control = makeControl(() => {
    crew ??= GraphCrew.start(job.threads - 1);
    return crew;
  });
  try {
    await control.checkpoint();
    if (job.plan === 'fieldIndex') return await buildMissingFields(job, control);
    return await buildSegments(job, openPayloadSource, control);
  } finally {
    await (await (crew as Promise<GraphCrew> | null))?.close();
  }
}

function makeControl(crew: () => Promise<GraphCrew>): BuildControl {
  let posted = 0;
  const pages = filePages();
  return {
    crew,
    ...(pages === null ? {} : { pages }),
    async checkpoint() {
      await setImmediate();
      if (cancelled) throw new BuildCancelled();
    },
    progress(stage, done, total) {
      beat();
      const now = performance.now();
      if (now - posted < PROGRESS_MS && done !== 0 && done !== total) return;
      posted = now;
      post({ kind: 'progress', stage, done, total });
    },
    now: () => performance.now(),
  };
}

function post(message: FromBuilder): void {
  port.postMessage(message);
}

/** `npm run simulate`: runs seeds and says how it went; with --seed alone, that one with its story. `--worker` is this script's own. */

import { fork } from 'node:child_process';
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import { scriptOptions } from '../script-options.js';
import { simulate } from './simulate.js';
import { addTo, emptyTotals, shown, summaryOf, type Totals } from './totals.js';

const USAGE = `npm run simulate -- [options]: clusters in one process, with simulated time, network and disks that fail, checked against a model

  --seeds N        how many, default 300
  --from S         the first one, default 1
  --seed S         this one alone, with its story
  --workers N      processes, default one for each CPU, at most 8
  --nodes N        of each cluster, default chosen by the seed
  --no-points      configuration alone, without points

Exit code 1 when something must not be.`;

const values = scriptOptions(USAGE, {
  seeds: { type: 'string' },
  seed: { type: 'string' },
  from: { type: 'string', default: '1' },
  workers: { type: 'string', default: String(Math.min(8, os.availableParallelism())) },
  'no-points': { type: 'boolean', default: false },
  nodes: { type: 'string' },
  worker: { type: 'boolean', default: false },
});

const options = { points: !values['no-points'], ...(values.nodes === undefined ? {} : { nodes: Number(values.nodes) }) };

if (values.worker) await work();
else if (values.seed !== undefined && values.seeds === undefined) await tellOne(Number(values.seed));
else await runAll(Number(values.seed ?? values.from), Number(values.seeds ?? 300), Number(values.workers));

/** One seed with its story. */
async function tellOne(seed: number): Promise<void> {
  const result = await simulate(seed, { ...options, tell: true });
  process.stdout.write(`${result.story.join('\n')}\n\n${shown(addTo(emptyTotals(), summaryOf(result)))}\n`);
  for (const violation of result.violations) process.stdout.write(`seed ${seed}: ${violation}\n`);
  process.exitCode = result.violations.length === 0 ? 0 : 1;
}

/** Seeds from..from+count-1 in several processes. */
async function runAll(from: number, count: number, workers: number): Promise<void> {
  let next = from;
  let done = 0;
  let totals: Totals = emptyTotals();
  const begunMs = Date.now();
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const given = [...(values['no-points'] ? ['--no-points'] : []), ...(values.nodes === undefined ? [] : ['--nodes', values.nodes])];
      const child = fork(fileURLToPath(import.meta.url), ['--worker', ...given], {
        execArgv: ['--enable-source-maps'],
      });
      const give = () => (next < from + count ? child.send(next++) : child.disconnect());
      child.on('message', (summary: ReturnType<typeof summaryOf>) => {
        totals = addTo(totals, summary);
        done += 1;
        if (summary.violations.length > 0) process.stdout.write(`seed ${summary.seed}: ${summary.violations[0]?.split('\n')[0]}\n`);
        if (done % 100 === 0) process.stdout.write(`· ${done} of ${count} seeds, ${Math.round((Date.now() - begunMs) / 1000)} s\n`);
        give();
      });
      child.once('error', reject);
      child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))));
      give();
    });
  await Promise.all(Array.from({ length: Math.min(workers, count) }, one));
  process.stdout.write(`${shown(totals)}\nin ${((Date.now() - begunMs) / 1000).toFixed(1)} s\n`);
  if (totals.failed.length > 0)
    process.stdout.write(`failed: ${totals.failed.join(' ')}; each with its story: npm run simulate -- --seed N\n`);
  process.exitCode = totals.failed.length === 0 ? 0 : 1;
}

/** A child process: runs the seeds that its parent sends. */
async function work(): Promise<void> {
  // Stacks cost time; the story of a seed has them.
  Error.stackTraceLimit = 0;
  for await (const seed of seedsOfParent()) {
    const result = await simulate(seed, options);
    process.send?.(summaryOf(result));
  }
}

async function* seedsOfParent(): AsyncGenerator<number> {
  const waiting: number[] = [];
  let wake: () => void = () => {};
  let open = true;
  process.on('message', (seed: number) => {
    waiting.push(seed);
    wake();
  });
  process.once('disconnect', () => {
    open = false;
    wake();
  });
  while (open || waiting.length > 0) {
    const seed = waiting.shift();
    if (seed !== undefined) yield seed;
    else
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  }
}

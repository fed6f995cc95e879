/**
 * A light load, a process of its own: at a steady pace writes of one point, small searches and requests to the main thread, each on a connection of
 * its own. It also looks at the memory of the node. Answers `take` with what it has seen since the last one.
 */

import { RestClient } from '../../rest-client.js';
import { memory } from '../common/measure.js';
import { waitsOf } from '../common/waits.js';
import type { Probed, ProbeJob, ToProbe } from './probe-jobs.js';

const PACE_MS = 10;
const MEMORY_PACE_MS = 100;
const POINTS = 1000;

interface Seen {
  readonly writes: number[];
  readonly searches: number[];
  readonly main: number[];
  ownLateMs: number;
  peakAnonymousMegabytes: number;
  peakResidentMegabytes: number;
}

let seen = nothing();

process.on('message', (message: ToProbe) => {
  if (message.kind === 'begin') begin(message.job);
  const { main, searches, writes, ...figures } = seen;
  seen = nothing();
  const value: Probed = { ...figures, writes: waitsOf(writes), searches: waitsOf(searches), main: waitsOf(main) };
  process.send?.({ ok: true, value });
});
process.on('disconnect', () => process.exit(0));

function begin({ collection, dim, pid, port }: ProbeJob): void {
  const path = `/collections/${collection}/points`;
  const vector = (at: number): number[] => Array.from({ length: dim }, (_, d) => ((at * 31 + d * 17) % 101) / 101);
  const point = (at: number): object => ({ points: [{ id: at % POINTS, vector: vector(at), payload: { n: at } }] });
  const repeat = (ask: (client: RestClient, at: number) => Promise<unknown>, times: (of: Seen) => number[]): void => {
    const client = new RestClient(port, 1);
    const once = async (at: number): Promise<void> => {
      const started = performance.now();
      await ask(client, at);
      const tookMs = performance.now() - started;
      times(seen).push(tookMs);
      setTimeout(() => run(at + 1), Math.max(0, PACE_MS - tookMs));
    };
    const run = (at: number): void => void once(at).catch(fail);
    run(0);
  };
  repeat(
    (client, at) => client.result('PUT', `${path}?wait=true`, point(at)),
    (of) => of.writes,
  );
  repeat(
    (client, at) => client.result('POST', `${path}/query`, { query: vector(at), limit: 3 }),
    (of) => of.searches,
  );
  repeat(
    (client) => client.call('GET', '/readyz'),
    (of) => of.main,
  );
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    seen.ownLateMs = Math.max(seen.ownLateMs, now - last - PACE_MS);
    last = now;
  }, PACE_MS);
  setInterval(() => {
    const found = memory(pid);
    seen.peakAnonymousMegabytes = Math.max(seen.peakAnonymousMegabytes, (found?.anonymous ?? 0) + (found?.shared ?? 0));
    seen.peakResidentMegabytes = Math.max(seen.peakResidentMegabytes, found?.rss ?? 0);
  }, MEMORY_PACE_MS);
}

function fail(error: unknown): void {
  process.send?.({ ok: false, error: String(error) });
  process.exit(1);
}

function nothing(): Seen {
  return { writes: [], searches: [], main: [], ownLateMs: 0, peakAnonymousMegabytes: 0, peakResidentMegabytes: 0 };
}

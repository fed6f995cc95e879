/** The clock of the machine is set while a node runs: a day on, and two days back. Only dates may follow. */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type NodeUnderTest, nodeFor, preloaded, temporaryFolder, untilIndexed } from './support.js';

const DAY_MS = 86_400_000;
const POINTS = 2000;
const DIM = 8;

/** Loaded before the node, in each of its threads: dates are off by the milliseconds in a file, which is looked at again every 20 ms. */
const program = (file: string): string => `
  import fs from 'node:fs';
  const now = Date.now;
  let stepMs = 0;
  let lookedMs = -1000;
  Date.now = () => {
    if (performance.now() - lookedMs > 20) {
      lookedMs = performance.now();
      try { stepMs = Number(fs.readFileSync(${JSON.stringify(file)}, 'utf8')); } catch {}
    }
    return now() + stepMs;
  };`;

interface Telemetry {
  readonly app: {
    readonly engine: { readonly workers: readonly { readonly name: string; readonly up: boolean; readonly restarts: number }[] };
  };
}

async function upload({ client }: NodeUnderTest, from: number): Promise<void> {
  const points = Array.from({ length: POINTS }, (_, at) => ({
    id: from + at,
    vector: Array.from({ length: DIM }, (_, dim) => ((at * 7 + dim) % 13) - 6),
  }));
  await client.result('PUT', '/collections/c/points?wait=true', { points });
}

async function search({ client }: NodeUnderTest): Promise<void> {
  const query = { query: Array(DIM).fill(1), limit: 3 };
  await Promise.all(Array.from({ length: 20 }, () => client.result('POST', '/collections/c/points/query?timeout=20', query)));
}

test('a clock that is set a day on and two days back times no request out, ends no thread and stops no build', async (t) => {
  const folder = await temporaryFolder(t);
  const stepFile = join(folder, 'step');
  const node = await nodeFor(t, { folder, nodeArguments: await preloaded(folder, program(stepFile)) });
  const { client } = node;
  await client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Dot' },
    optimizers_config: { indexing_threshold: 10 },
  });
  await upload(node, 0);
  await untilIndexed(client, 'c', POINTS);
  const dayOf = async (): Promise<number> => Date.parse((await client.call('GET', '/collections')).headers.date as string) / DAY_MS;

  let points = POINTS;
  for (const stepMs of [DAY_MS, -DAY_MS]) {
    const before = await dayOf();
    // Reads and a write are under way while the clock is set.
    const underWay = Promise.all([search(node), search(node), upload(node, points)]);
    await writeFile(stepFile, String(stepMs));
    await underWay;
    points += POINTS;
    await search(node);
    assert.ok(Math.abs((await dayOf()) - before) > 0.9, 'the clock was not set');
    await untilIndexed(client, 'c', points);
  }
  const { engine } = (await client.result<Telemetry>('GET', '/telemetry?details_level=3')).app;
  assert.deepEqual(
    engine.workers.filter(({ restarts }) => restarts > 0),
    [],
  );
});

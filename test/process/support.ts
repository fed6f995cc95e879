/** What the tests with real processes share: folders that go away, nodes that end, and waiting for a collection. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type NodeProcessOptions, type RunningNode, startNodeProcess } from '../../ops/node-process.js';
import { RestClient } from '../../ops/rest-client.js';

/** A new folder that is removed after the test. */
export async function temporaryFolder(test: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'troupe-process-'));
  test.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

let preloadedCount = 0;

/** Options of Node.js that load these programs first, in each thread. */
export async function preloaded(folder: string, ...programs: string[]): Promise<string[]> {
  const options: string[] = [];
  for (const program of programs) {
    const file = join(folder, `preloaded-${preloadedCount++}.mjs`);
    await writeFile(file, program);
    options.push(`--import=${file}`);
  }
  return options;
}

export interface NodeUnderTest extends RunningNode {
  readonly client: RestClient;
}

/** A node that is killed after the test if it still runs. */
export async function nodeFor(test: TestContext, options: NodeProcessOptions): Promise<NodeUnderTest> {
  const node = await startNodeProcess(options);
  const client = new RestClient(node.port, 16, options.tls);
  test.after(async () => {
    client.close();
    await node.end('SIGKILL');
  });
  return { ...node, client };
}

export interface CollectionInfo {
  readonly status: string;
  readonly optimizer_status: unknown;
  readonly points_count: number;
  readonly indexed_vectors_count: number;
}

const POLL_MS = 25;

/** Asks again and again until the answer is as wanted, and gives it back; throws with the last one after `timeoutMs`. */
export async function until<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean, timeoutMs = 60_000): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    if (performance.now() > deadline) throw new Error(`not as wanted after ${timeoutMs} ms: ${JSON.stringify(answer)}`);
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

/** Waits until a collection is green with at least so many vectors indexed. */
export function untilIndexed(client: RestClient, collection: string, indexedMin: number): Promise<CollectionInfo> {
  return until(
    () => client.result<CollectionInfo>('GET', `/collections/${collection}`),
    (info) => info.status === 'green' && info.indexed_vectors_count >= indexedMin,
  );
}

export interface Point {
  readonly id: number | string;
  readonly payload?: Record<string, unknown> | null;
  readonly vector?: number[];
}

export interface ScoredPoint extends Point {
  readonly score: number;
}

/** Points with integer ids, in their order. */
export function sortedById<P extends Point>(points: readonly P[]): P[] {
  return [...points].sort((a, b) => Number(a.id) - Number(b.id));
}

/** A collection gets a shard more, and one less, while it is searched. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Truth } from '../common/jobs.js';
import { peakMegabytes, resetPeak } from '../common/measure.js';
import { searchRequests, UPLOAD_BATCH, uploadRequests, writeBaselineData } from '../common/prepared.js';
import { writeRequests } from '../common/requests.js';
import { createFleetCollection, type FleetNode, runLoad, searchRecall, startFleet, untilQuiet } from './fleet.js';
import type { MoveSettings } from './moves.js';

export interface ReshardingRow {
  readonly what: string;
  readonly seconds: number;
  readonly secondsUntilQuiet: number;
  /** Of the node that had most resident, megabytes. */
  readonly peak: number;
  readonly p50: number;
  readonly p99: number;
  readonly queriesPerSecond: number;
  readonly recallBefore: number;
  readonly recallAfter: number;
}

interface ShownResharding {
  readonly shard_count: number;
  readonly shard_transfers: readonly unknown[];
  readonly resharding_operations?: readonly unknown[];
}

const COLLECTION = 'resharded';
const SHARDS = 3;
const EF = 64;
const CONNECTIONS = 2;
const POLL_MS = 100;
const MINUTES_MAX = 30;

/** No rows where the cluster does not know resharding. */
export async function measureResharding(settings: Omit<MoveSettings, 'methods'>): Promise<ReshardingRow[]> {
  const { baseline, dataset, folder, load, say } = settings;
  const truth = await baseline.run<Truth>({ kind: 'truth', data: writeBaselineData(dataset, folder), rows: null, k: 10 });
  const [uploadFile, searchFile] = [join(folder, 'upload.requests'), join(folder, 'search.requests')];
  writeRequests(uploadFile, uploadRequests(dataset, COLLECTION));
  writeRequests(searchFile, searchRequests(dataset, COLLECTION, `"limit":10,"params":{"hnsw_ef":${EF}}`));
  const fleet = await startFleet(3, folder, settings.nodeArguments);
  const first = fleet.nodes[0] as FleetNode;
  const path = `/collections/${COLLECTION}/cluster`;
  const recall = () => searchRecall(load, fleet.nodes, searchFile, truth, CONNECTIONS);
  try {
    await createFleetCollection(fleet, COLLECTION, dataset, SHARDS, 2);
    const batches = Math.ceil(dataset.count / UPLOAD_BATCH);
    await runLoad(load, fleet.nodes, uploadFile, { connections: 6, requests: batches, requestsMin: batches });
    await untilQuiet(fleet, COLLECTION);
    const rows: ReshardingRow[] = [];
    let shards = SHARDS;
    for (const direction of ['up', 'down']) {
      const recallBefore = await recall();
      for (const { pid } of fleet.nodes) resetPeak(pid);
      const answer = await first.client.call('POST', path, { start_resharding: { direction } });
      if (answer.status !== 200) {
        say(`resharding ${direction}: ${answer.status} ${answer.text.slice(0, 300)}`);
        return rows;
      }
      shards += direction === 'up' ? 1 : -1;
      const startedMs = performance.now();
      const searching = runLoad(load, fleet.nodes, searchFile, { connections: CONNECTIONS });
      await untilResharded(first, path, shards);
      const seconds = (performance.now() - startedMs) / 1000;
      load.post({ kind: 'stop' });
      const { p50, p99, ...searched } = await searching;
      const peak = Math.max(...fleet.nodes.map(({ pid }) => peakMegabytes(pid) ?? 0));
      const secondsUntilQuiet = seconds + (await untilQuiet(fleet, COLLECTION)) / 1000;
      const what = `${direction}, ${direction === 'up' ? shards - 1 : shards + 1} to ${shards} shards of 2 copies`;
      const queriesPerSecond = searched.requests / searched.seconds;
      const recallAfter = await recall();
      rows.push({ what, seconds, secondsUntilQuiet, peak, p50, p99, queriesPerSecond, recallBefore, recallAfter });
      say(
        `resharding ${what}: ${seconds.toFixed(1)} s, p99 ${p99.toFixed(1)} ms, recall ${recallBefore.toFixed(4)} → ${recallAfter.toFixed(4)}`,
      );
    }
    return rows;
  } finally {
    await fleet.close();
  }
}

async function untilResharded({ client }: FleetNode, path: string, shards: number): Promise<void> {
  const deadline = performance.now() + MINUTES_MAX * 60_000;
  for (;;) {
    const shown = await client.result<ShownResharding>('GET', path).catch(() => null);
    const operations = shown?.resharding_operations?.length ?? 0;
    if (shown?.shard_count === shards && operations === 0 && shown.shard_transfers.length === 0) return;
    if (performance.now() > deadline) throw new Error(`not done after ${MINUTES_MAX} minutes: ${JSON.stringify(shown)}`);
    await sleep(POLL_MS);
  }
}

/** Runs a reader in this thread. Entries of readers call it; one with a server for clients says how it is opened. */

import os from 'node:os';
import { parentPort } from 'node:worker_threads';
import { prepareByteScan } from '../../protocols/rest/byte-scan.js';
import { initChecksum } from '../disk/checksum.js';
import { giveWayCall, setTurns } from '../memory/system-calls.js';
import { blockThread } from '../threads/clock.js';
import { RestingHeap } from '../threads/collect-garbage.js';
import { givingWay, lowerPriority } from '../threads/low-priority.js';
import type { FromReader, ReaderData, ToReader } from '../threads/messages.js';
import { startData } from '../threads/start-data.js';
import { crowdAround } from './company.js';
import { type AskPeers, type OpenDoor, Reader } from './reader.js';

/** A tenth of the weight of other threads, where these want all CPUs: heavy reads go on, and quick ones hardly notice them. */
const HEAVY_NICENESS = 10;

/**
 * A quick read does not wait for the end of another thread's turn, 1.4 ms and more. Four streams of 2,000 points a second with 20 searches a second, turned on and
 * off every ten seconds: p99 6.8 to 8.3 ms without, 5.1, 5.7, 6.2 and 9.1 with it; at full load as many searches for the same CPU.
 */
const TURN_NS = 100_000n;

export async function runReader(openDoor?: OpenDoor, peers?: AskPeers): Promise<void> {
  if (parentPort === null) return;
  const port = parentPort;
  await initChecksum();
  const data = await startData<ReaderData>(port);
  const post = (message: FromReader, transfer?: ArrayBuffer[]): void => port.postMessage(message, transfer ?? []);
  const isForHeavy = data.index >= data.firstForHeavy;
  if (isForHeavy) lowerPriority(HEAVY_NICENESS);
  // Only reads of clients that are connected here ask peers, and connections with these would keep the thread from its end.
  const reader = new Reader(data, post, () => port.close(), openDoor, isForHeavy ? undefined : peers);
  if (isForHeavy) {
    const isCrowded = crowdAround(data.quickReads, os.cpus().length);
    reader.giveWay = givingWay({ yieldCpu: giveWayCall() ?? (() => {}), rest: blockThread, isCrowded });
  }
  port.on('message', (message: ToReader) => reader.receive(message));
  port.postMessage({ kind: 'ready' } satisfies FromReader);
  if (!isForHeavy) setTurns(TURN_NS);
  prepareByteScan();
  new RestingHeap(() => !reader.isEmpty).begin();
}

/** A stream of batches that are due at fixed times: a slow answer does not slow it down, as long as there are connections without a call. */

import { setTimeout as sleep } from 'node:timers/promises';
import { openGrpc } from '../common/grpc-lane.js';
import { answerOn } from '../common/lane.js';
import { type Waits, waitsOf } from '../common/waits.js';

export interface Schedule {
  readonly batches: number;
  readonly batchesPerSecond: number;
}

export interface StreamSent {
  /** From when the first batch was due until the last answer. */
  readonly seconds: number;
  /** From when a batch was sent until its answer. */
  readonly writes: Waits;
  /** From when a batch was due until its answer. */
  readonly writesSinceDue: Waits;
  /** From when a batch was due until it was sent. */
  readonly delays: Waits;
  /** Batches that were sent `LATE_MS` or more after they were due. */
  readonly late: number;
}

/** Later than this a batch was not held up by a timer alone. */
export const LATE_MS = 10;
const CONNECTIONS = 4;

/** requestOf: called for one batch after the other, before it is due. Late batches are sent at once. Rejects when a batch is refused. */
export async function sendOnTime(
  grpcPort: number,
  { batches, batchesPerSecond }: Schedule,
  requestOf: (batch: number) => Buffer,
): Promise<StreamSent> {
  const lanes = await Promise.all(Array.from({ length: CONNECTIONS }, () => openGrpc(grpcPort)));
  const writesMs: number[] = [];
  const delaysMs: number[] = [];
  const sinceDueMs: number[] = [];
  const startedMs = performance.now();
  let next = 0;
  try {
    await Promise.all(
      lanes.map(async (lane) => {
        while (next < batches) {
          const batch = next++;
          const request = requestOf(batch);
          const dueMs = startedMs + (1000 * batch) / batchesPerSecond;
          const earlyMs = dueMs - performance.now();
          if (earlyMs > 0) await sleep(earlyMs);
          const sentMs = performance.now();
          const { bytes, good } = await answerOn(lane, request);
          if (!good) throw new Error(`batch ${batch} was refused: ${bytes.toString('utf8').slice(0, 500)}`);
          const answeredMs = performance.now();
          delaysMs.push(sentMs - dueMs);
          writesMs.push(answeredMs - sentMs);
          sinceDueMs.push(answeredMs - dueMs);
        }
      }),
    );
    return {
      seconds: (performance.now() - startedMs) / 1000,
      writes: waitsOf(writesMs),
      writesSinceDue: waitsOf(sinceDueMs),
      delays: waitsOf(delaysMs),
      late: delaysMs.filter((delayMs) => delayMs >= LATE_MS).length,
    };
  } finally {
    for (const lane of lanes) lane.close();
  }
}

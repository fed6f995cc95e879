/**
 * What it costs this machine to hand a message to another thread and to get one back. On a virtual machine a wake-up is
 * often dearer than the work that it asks for, so figures of two machines can be compared only next to it.
 */

import { Worker } from 'node:worker_threads';

export interface WakeUp {
  readonly underWay: number;
  /** Microseconds of CPU of both threads for one message there and back. */
  readonly cpuUs: number;
  /** Microseconds on the clock. */
  readonly wallUs: number;
}

const ECHO = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', (message) => parentPort.postMessage(message));
`;
const WARM_TRIPS = 2000;
const TRIPS = 20_000;

/** Round trips of `postMessage`, so many of them under way at a time. */
export async function measureWakeUp(underWay: number): Promise<WakeUp> {
  const worker = new Worker(ECHO, { eval: true });
  try {
    await roundTrips(worker, underWay, WARM_TRIPS);
    const cpu = process.cpuUsage();
    const startedMs = performance.now();
    await roundTrips(worker, underWay, TRIPS);
    const { user, system } = process.cpuUsage(cpu);
    return { underWay, cpuUs: (user + system) / TRIPS, wallUs: ((performance.now() - startedMs) * 1000) / TRIPS };
  } finally {
    await worker.terminate();
  }
}

function roundTrips(worker: Worker, underWay: number, count: number): Promise<void> {
  return new Promise((done) => {
    let sent = 0;
    let back = 0;
    const send = (): void => {
      if (sent === count) return;
      sent++;
      worker.postMessage(sent);
    };
    worker.removeAllListeners('message');
    worker.on('message', () => {
      if (++back === count) done();
      else send();
    });
    for (let i = 0; i < underWay; i++) send();
  });
}

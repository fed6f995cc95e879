/** A worker that takes all the memory of its heap when it is told anything. */

import { parentPort } from 'node:worker_threads';

parentPort?.on('message', () => {
  const kept: unknown[][] = [];
  for (;;) kept.push(Array.from({ length: 1000 }, (_, at) => ({ at })));
});
parentPort?.postMessage({ kind: 'ready' });

/** A worker that hears nothing more once it is told to end, and that something keeps alive. */

import { parentPort } from 'node:worker_threads';

setInterval(() => {}, 1 << 30);
parentPort?.on('message', () => parentPort?.close());
parentPort?.postMessage({ kind: 'ready' });

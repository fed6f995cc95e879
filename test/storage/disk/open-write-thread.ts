/**
 * A thread that leaves a transaction open: it throws, or waits. As a process of its own it starts such a thread, and ends itself at once.
 */

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { endAtOnce } from '../../../ops/end-process.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { DATABASES } from '../../../storage/disk/lmdb-tables.js';

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { folder: process.argv[2], throws: false } });
  worker.once('message', () => endAtOnce(7));
} else {
  const { folder, throws } = workerData as { folder: string; throws: boolean };
  const environment = Environment.open(folder, () => {}, DATABASES, 2);
  environment.begin();
  environment.put('meta', Buffer.from('key'), Buffer.from('open'));
  parentPort?.postMessage('open');
  if (throws)
    setImmediate(() => {
      throw new Error('the thread ends');
    });
  else setInterval(() => {}, 1000);
}

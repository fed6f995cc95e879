/** A worker in the place of the archive's thread: it ends in the midst of its first work, after that has begun to write. */

import fs from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { ToArchiveThread } from '../../../storage/archive/thread-messages.js';

parentPort?.on('message', (message: ToArchiveThread) => {
  if (message.kind !== 'work') return;
  const { work } = message;
  if (work.kind === 'pack') fs.writeFileSync(work.file, 'half');
  if (work.kind === 'unpack') fs.mkdirSync(work.order.folder);
  throw new Error('this thread breaks');
});

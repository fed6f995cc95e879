/** A worker in the place of the archive's thread: it works for ever at its first work, once it has left a file that says so; another one answers. */

import { existsSync, writeFileSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { FromArchiveThread, ToArchiveThread } from '../../../storage/archive/thread-messages.js';
import '../../../storage/threads/pulse.js';

parentPort?.on('message', (message: ToArchiveThread) => {
  if (message.kind !== 'work' || message.work.kind !== 'hash') return;
  const { file } = message.work;
  if (!existsSync(file)) {
    writeFileSync(file, '');
    for (;;);
  }
  parentPort?.postMessage({ kind: 'done', id: message.id, value: { bytes: 0, sha256: '' } } satisfies FromArchiveThread);
});

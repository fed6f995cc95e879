/** A keeper of a consensus log that works for ever at its first write, once it has left a file that says so. */

import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { NOTHING_STORED } from '../../../protocols/model/consensus.js';
import type { FromKeeper, ToKeeper } from '../../../storage/consensus-log/messages.js';
import '../../../storage/threads/pulse.js';

const { folder } = workerData as { folder: string };
const sign = path.join(path.dirname(folder), 'hangs');
const answer = (reply: FromKeeper): void => parentPort?.postMessage(reply);

parentPort?.on('message', ({ kind }: ToKeeper) => {
  if (kind === 'load') {
    answer({ kind: 'loaded', stored: NOTHING_STORED });
    return;
  }
  if (kind === 'write' && !existsSync(sign)) {
    writeFileSync(sign, '');
    for (;;);
  }
  answer({ kind: 'done' });
  if (kind === 'close') parentPort?.close();
});

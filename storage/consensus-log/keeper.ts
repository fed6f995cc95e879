/** Worker entry of the thread that keeps the consensus log: its transactions wait for the disk, and nobody else does. */

import { parentPort, workerData } from 'node:worker_threads';
import { errorFacts } from '../../protocols/errors.js';
// Answers the watch from the beginning.
import '../threads/pulse.js';
import { initChecksum } from '../disk/checksum.js';
import type { Environment } from '../disk/lmdb.js';
import { commitChanges, openConsensus, readConsensus } from './environment.js';
import type { FromKeeper, ToKeeper } from './messages.js';
import type { ConsensusDatabase } from './records.js';

const port = parentPort;
if (port === null) throw new Error('keeper.js is the entry of a worker thread');

const { folder } = workerData as { folder: string };
let environment: Environment<ConsensusDatabase> | null = null;

function receive(message: ToKeeper): void {
  const answer = (reply: FromKeeper): void => port?.postMessage(reply);
  try {
    switch (message.kind) {
      case 'load':
        environment ??= openConsensus(folder);
        answer({ kind: 'loaded', stored: readConsensus(environment) });
        return;
      case 'write':
        if (environment === null) throw new Error('written before it was loaded');
        commitChanges(environment, message.changes);
        answer({ kind: 'done' });
        return;
      case 'close':
        void (environment?.close() ?? Promise.resolve()).then(() => {
          answer({ kind: 'done' });
          port?.close();
        });
        return;
      default:
        message satisfies never;
    }
  } catch (error) {
    answer({ kind: 'failed', error: errorFacts(error) });
  }
}

void initChecksum().then(() => port.on('message', receive));

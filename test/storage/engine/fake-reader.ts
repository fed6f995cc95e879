/** A reader's thread that does what the request's `path.do` says, for tests of the pool. */

import { parentPort, workerData } from 'node:worker_threads';
import { steadyNowMs } from '../../../storage/threads/clock.js';
import { Deadline } from '../../../storage/threads/deadline.js';
import type { FromReader, ReaderData, ToReader } from '../../../storage/threads/messages.js';
import { ScratchTurns } from '../../../storage/threads/scratch-turns.js';

const post = (message: FromReader): void => parentPort?.postMessage(message);
const attached: string[] = [];
let deadlines: Float64Array | null = null;

parentPort?.on('message', (message: ToReader) => {
  switch (message.kind) {
    case 'attach':
      return void attached.push(`attach ${message.spec.key} ${message.set.generation}`);
    case 'retire':
      attached.push(`retire ${message.key} ${message.generation}`);
      return post({ kind: 'retired', key: message.key, generation: message.generation });
    case 'detach':
      attached.push(`detach ${message.key}${message.frees ? ' and collect' : ''}`);
      return post({ kind: 'detached', key: message.key });
    case 'ownReads':
      deadlines = message.news.deadlines;
      return;
    case 'door':
      // As if it were stuck in a read of a client whose time is long over.
      if (message.settings !== 'hang') return;
      (deadlines as Float64Array)[(workerData as ReaderData).index] = 1;
      return hang();
    case 'ping':
      return post({ kind: 'pong' });
    case 'end':
      return parentPort?.close();
    case 'split':
      // Says in which thread it was decoded.
      return post({ kind: 'split', id: message.id, write: { stages: [], parts: [], listed: false, failure: null, index: named() } });
    case 'read':
      if (message.request.path.do === 'leave' && message.mayLeave) return post({ kind: 'tooHeavy', id: message.id });
      return read(message.id, message.request.path.do ?? '', message.request.body);
  }
});

function named(): { readonly field: string; readonly schema: null } {
  return { field: `from ${(workerData as ReaderData).index}`, schema: null };
}

function hang(): never {
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
}

function read(id: number, what: string, body: Uint8Array | null): void {
  const { index, scratchTurns } = workerData as ReaderData;
  if (what === 'crash' || (what === 'crash in 0' && index === 0)) process.exit(7);
  if (what === 'hang') hang();
  if (what === 'take a turn' || what === 'crash in its turn') {
    new ScratchTurns(scratchTurns, index).take(1, Object.assign(new Deadline(), { deadlineMs: steadyNowMs() + 2000 }));
    if (what === 'crash in its turn') process.exit(7);
  }
  if (what === 'refuse') {
    post({ kind: 'error', id, error: { code: 'wrongInput', detail: 'as asked' } });
    return;
  }
  if (what === 'pause') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
  const text = what === 'log' ? attached.join('; ') : what === 'size' ? `${body?.buffer.byteLength}` : `${what} from ${index}`;
  post({ kind: 'answer', id, body: new TextEncoder().encode(text), usage: null });
}

post({ kind: 'ready' });

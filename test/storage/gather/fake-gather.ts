/** A gather thread that does what the request's `path.do` says, for tests of its pool. It is lost at a place of number 0. */

import { parentPort } from 'node:worker_threads';
import type { FromGather, ToGather } from '../../../storage/threads/gather.js';

const post = (message: FromGather): void => parentPort?.postMessage(message);
const text = (id: number, what: string): void => post({ kind: 'answer', id, body: new TextEncoder().encode(what) });

parentPort?.on('message', (message: ToGather) => {
  const { id } = message;
  switch (message.kind) {
    case 'gather':
      return begin(id, message.request.path.do ?? '');
    case 'scattered':
      return text(id, message.answers.map((answer) => new TextDecoder().decode(answer)).join(' and '));
    case 'located':
      if (message.place.uid === 0) process.exit(7);
      return text(id, `place ${message.place.uid}`);
    case 'refused':
      return post({ kind: 'error', id, error: message.error });
    case 'forget':
      return;
  }
});

function begin(id: number, what: string): void {
  switch (what) {
    case 'ask':
      post({ kind: 'scatter', id, call: 1, ask: { collection: null, shards: null, body: new Uint8Array([1, 2]) } });
      break;
    case 'locate':
      post({ kind: 'locate', id, call: 1, collection: 'other' });
      break;
    case 'wait':
      break;
    default:
      text(id, what);
  }
}

post({ kind: 'ready' });

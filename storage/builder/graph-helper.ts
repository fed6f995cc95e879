/** Worker entry: makes graphs together with a builder, which starts it and ends it (`graph-crew.ts`). It inherits the builder's priority. */

import { parentPort } from 'node:worker_threads';
import { MakerThread } from '../../vectors/maker-thread.js';
import type { FromHelper, ToHelper } from './graph-crew.js';

if (parentPort === null) throw new Error('graph-helper.js is a worker');
const port = parentPort;

let thread: MakerThread | null = null;

port.on('message', (message: ToHelper) => {
  switch (message.kind) {
    case 'begin':
      thread = new MakerThread(message.making, message.number);
      return;
    case 'step':
      void work(message);
      return;
    default:
      throw new Error(`unknown message ${JSON.stringify(message satisfies never)}`);
  }
});

port.postMessage('ready' satisfies FromHelper);

/** What goes wrong ends the thread, and with it the build. */
async function work({ counts, step }: Extract<ToHelper, { kind: 'step' }>): Promise<void> {
  if (thread === null) throw new Error('there is no graph to make');
  await thread.work(step, counts, async () => {});
  port.postMessage('done' satisfies FromHelper);
}

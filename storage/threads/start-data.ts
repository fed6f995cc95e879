/** What a thread begins with. */

import { type MessagePort, workerData } from 'node:worker_threads';
import { beginPulse, type PulseData } from './pulse.js';

/** This thread's data; of one that began before its pool (`pool/early-thread.ts`), the first message. The next one must not come before it has said that it is ready. */
export async function startData<Data>(port: MessagePort): Promise<Data> {
  if (workerData !== null) return workerData as Data;
  const data = await new Promise<Data & { readonly pulse?: PulseData }>((resolve) => port.once('message', resolve));
  if (data.pulse !== undefined) beginPulse(data.pulse);
  return data;
}

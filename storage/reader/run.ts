/** Runs a reader in this thread. Entries of readers call it; one with a server for clients says how it is opened. */

import { parentPort, workerData } from 'node:worker_threads';
import { initChecksum } from '../disk/checksum.js';
import type { FromReader, ReaderData, ToReader } from '../threads/messages.js';
import { type AskPeers, type OpenDoor, Reader } from './reader.js';

export async function runReader(openDoor?: OpenDoor, peers?: AskPeers): Promise<void> {
  if (parentPort === null) return;
  const port = parentPort;
  await initChecksum();
  const post = (message: FromReader, transfer?: ArrayBuffer[]): void => port.postMessage(message, transfer ?? []);
  const reader = new Reader(workerData as ReaderData, post, () => port.close(), openDoor, peers);
  port.on('message', (message: ToReader) => reader.receive(message));
  port.postMessage({ kind: 'ready' } satisfies FromReader);
}

/** Worker entry of a home worker: it writes the replicas that are its own. */

import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads';
import { prepareByteScan } from '../../protocols/rest/byte-scan.js';
import { initChecksum } from '../disk/checksum.js';
import { HeldValues } from '../memory/held-memory.js';
import { Ledger } from '../memory/shared-ledger.js';
import { filePages, mappedPagesGiver, memoryEmptier } from '../memory/system-calls.js';
import { SeenScans } from '../reader/seen-scans.js';
import { dateMs, steadyNowMs } from '../threads/clock.js';
import { GarbageCollector, RestingHeap } from '../threads/collect-garbage.js';
import type { FromWriter, ToWriter, WriterData } from '../threads/messages.js';
import { SentSets } from '../threads/sent-sets.js';
import { startData } from '../threads/start-data.js';
import { LogKeeping } from './log-keeping.js';
import { ReplicaWriter, type WriterPort } from './replica-writer.js';
import { overAfter, PORTION_MS, SLICE_MS, Turns } from './turns.js';

if (parentPort !== null) void begin(parentPort);

async function begin(port: MessagePort): Promise<void> {
  await initChecksum();
  run(port, await startData<WriterData>(port));
}

function run(port: MessagePort, { logs: logShare, memory: memoryShare }: WriterData): void {
  const writers = new Map<string, ReplicaWriter>();
  const garbage = new GarbageCollector();
  const sent = new SentSets();
  const memory = new Ledger(memoryShare);
  const turns = new Turns((run) => setImmediate(run), drain);
  const logs = new LogKeeping(logShare, {
    now: () => steadyNowMs(),
    after: (ms, run) => {
      setTimeout(run, ms).unref();
    },
  });

  const writerPort: WriterPort = {
    post: (message: FromWriter, gives: readonly ArrayBuffer[] = []) => port.postMessage(message, gives),
    pack: (owner, set) => sent.pack(owner, set),
    now: () => steadyNowMs(),
    dateMs,
    later: (run) => turns.soon(run),
    between: (run) => turns.between(run),
    beginSlice: () => overAfter(SLICE_MS),
    beginPortion: () => overAfter(PORTION_MS),
    after: (ms, run) => {
      setTimeout(run, ms);
    },
    end: (error) => {
      setImmediate(() => {
        throw error;
      });
    },
    // Reaches standard error through the main thread, with the name of this warning.
    warn: (message) => process.emitWarning(message, 'TroupeWriter'),
    collectGarbageSoon: (freed) => garbage.soon(freed),
    unmapPages: (file) => mappedPagesGiver()?.(file),
    // These are asked for when they are needed, as a start has no time for it.
    get emptyMemory() {
      return memoryEmptier();
    },
    get pages() {
      return filePages();
    },
    left: (bytes) => memory.left.add(bytes),
    heldValues: () => new HeldValues(memory),
    logs,
    scans: new SeenScans((scans) => port.postMessage({ kind: 'scans', scans } satisfies FromWriter)),
  };

  function drain(): void {
    for (let received = receiveMessageOnPort(port); received !== undefined; ) {
      receive(received.message as ToWriter);
      received = receiveMessageOnPort(port);
    }
  }

  function receive(message: ToWriter): void {
    const key = message.kind === 'open' ? message.spec.key : message.key;
    logs.used();
    let writer = writers.get(key);
    if (writer === undefined) {
      const made = new ReplicaWriter(key, writerPort, () => {
        if (writers.get(key) === made) writers.delete(key);
      });
      writers.set(key, made);
      writer = made;
    }
    writer.push(message);
  }

  port.on('message', receive);
  writerPort.post({ kind: 'ready' });
  prepareByteScan();
  new RestingHeap(() => writers.size > 0).begin();
}

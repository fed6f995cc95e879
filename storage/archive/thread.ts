/** Worker entry: packs, unpacks and hashes at a low priority of the system. Works take turns, a chunk each. See `thread-messages.ts`. */

import { parentPort } from 'node:worker_threads';
// Answers the watch from the beginning.
import '../threads/pulse.js';
import { initChecksum } from '../disk/checksum.js';
import { lowerPriority } from '../threads/low-priority.js';
import { archiveErrorFacts } from './archive-error.js';
import { beginLogAfter } from './begin-log.js';
import { cancelledWork, Packing, type PackSource, packChunks, packToFile } from './pack.js';
import type { ArchiveWorkOptions, PackOrder } from './port.js';
import { hashFile, manifestOfFile } from './read-archive.js';
import { leaveOutBase } from './read-base.js';
import { type ArchiveWork, type FileWork, type FromArchiveThread, STREAM_WINDOW_CHUNKS, type ToArchiveThread } from './thread-messages.js';
import { unpackArchive } from './unpack.js';

if (parentPort === null) throw new Error('thread.js is a worker');
const port = parentPort;

/** As builders: whoever answers requests comes first. */
const NICENESS = 10;
/** Progress is posted this often at most. */
const PROGRESS_MS = 100;

interface RunningWork {
  readonly cancel: AbortController;
  readonly window: StreamWindow;
}

/** Chunks that may be sent. */
class StreamWindow {
  private open = STREAM_WINDOW_CHUNKS;
  private wake: () => void = () => {};

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', () => this.wake(), { once: true });
  }

  add(): void {
    this.open++;
    this.wake();
  }

  /** Waits until a chunk may be sent. Errors: `unavailable` if the work is cancelled. */
  async take(): Promise<void> {
    while (this.open === 0 && !this.signal.aborted) await new Promise<void>((resolve) => (this.wake = resolve));
    if (this.signal.aborted) throw cancelledWork();
    this.open--;
  }
}

const works = new Map<number, RunningWork>();
lowerPriority(NICENESS);
const ready = initChecksum();

port.on('message', (message: ToArchiveThread) => {
  switch (message.kind) {
    case 'work':
      void carryOut(message.id, message.work);
      return;
    case 'more':
      works.get(message.id)?.window.add();
      return;
    case 'cancel':
      works.get(message.id)?.cancel.abort();
      return;
    default:
      throw new Error(`unknown message ${JSON.stringify(message satisfies never)}`);
  }
});

async function carryOut(id: number, work: ArchiveWork): Promise<void> {
  const cancel = new AbortController();
  const running = { cancel, window: new StreamWindow(cancel.signal) };
  works.set(id, running);
  try {
    await ready;
    const options = { signal: cancel.signal, onProgress: progress(id) };
    const value = await (work.kind === 'packStream' ? packForTaker(id, work.order, running.window, options) : workOnFile(work, options));
    post({ kind: 'done', id, value });
  } catch (error) {
    post({ kind: 'failed', id, error: archiveErrorFacts(error) });
  } finally {
    works.delete(id);
  }
}

function workOnFile(work: FileWork, options: ArchiveWorkOptions) {
  switch (work.kind) {
    case 'pack':
      return packOrder(work.order, work.file, options);
    case 'unpack':
      return unpackArchive({ ...work.order, from: work.order.file, ...options });
    case 'manifestOf':
      return manifestOfFile(work.file, options);
    case 'hash':
      return hashFile(work.file, options);
    case 'beginLogAfter':
      return beginLogAfter(work.folder, work.at, work.timeMs).then(() => undefined);
    case 'addToLog':
      return addToLog(work.folder, work.entries, work.params);
    default:
      throw new Error(`unknown work ${JSON.stringify(work satisfies never)}`);
  }
}

/** What decodes operations is loaded when it is needed. */
async function addToLog(...order: Parameters<typeof import('./add-to-log.js').addToLog>): Promise<undefined> {
  const late = await import('./add-to-log.js');
  await late.addToLog(...order);
}

async function packOrder(order: PackOrder, file: string, options: ArchiveWorkOptions) {
  const source = sourceOf(order, options);
  const { folderOf } = source;
  const manifest = order.base === undefined ? order.manifest : await leaveOutBase(order.manifest, folderOf, order.base, options);
  return packToFile({ ...source, manifest }, file, order.freeBytesMin ?? 0);
}

function packForTaker(id: number, order: PackOrder, window: StreamWindow, options: ArchiveWorkOptions) {
  const { folderOf, manifest } = sourceOf(order, options);
  const packing = new Packing(manifest, folderOf);
  post({ kind: 'streaming', id, bytes: packing.bytes });
  return packChunks(packing, options, async (part) => {
    await window.take();
    // The taker keeps its chunks.
    const chunk = new Uint8Array(part);
    port.postMessage({ kind: 'chunk', id, chunk } satisfies FromArchiveThread, [chunk.buffer]);
  });
}

function sourceOf({ folders, manifest }: PackOrder, options: ArchiveWorkOptions): PackSource {
  const places = manifest.collections.map(({ shards }, at) => new Map(shards.map(({ id }, n) => [id, folders[at]?.[n]])));
  return {
    ...options,
    manifest,
    folderOf(collection, shard) {
      const folder = places[collection]?.get(shard);
      if (folder === undefined) throw new Error(`no folder is given for shard ${shard} of collection ${collection}`);
      return folder;
    },
  };
}

function progress(id: number): (done: number, total: number) => void {
  let posted = Number.NEGATIVE_INFINITY;
  return (done, total) => {
    const now = performance.now();
    if (now - posted < PROGRESS_MS && done !== total) return;
    posted = now;
    post({ kind: 'progress', id, done, total });
  };
}

function post(message: FromArchiveThread): void {
  port.postMessage(message);
}

/** The leader's side of a `snapshot` transfer: a checkpoint of its replica, file by file, to the target. */

import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PeerCalls } from '../../cluster/data-messages.js';
import type { TransferRun } from '../../cluster/transfer/runs.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ReplicaKey } from '../../storage/engine/messages.js';
import type { ReplicaCheckpoint, ShardLogPort } from '../../storage/engine/shard-log.js';
import type { CollectionStore } from '../collection/store.js';

/** Below what a call may carry, and small enough that the main thread is not held up. */
const PART_BYTES = 2 * 2 ** 20;
const PART_MS = 30_000;
/** The target opens the replica, which may take as long as reading it. */
const INSTALL_MS = 600_000;

export interface FileSenderParts {
  readonly engine: Pick<ShardLogPort, 'checkpoint' | 'releaseCheckpoint'>;
  readonly calls: PeerCalls;
  readonly store: Pick<CollectionStore, 'staging'>;
}

/** Resolves when the target has installed the files. The leader's replica stays in use meanwhile. Errors: those of the engine, the disk, the target. */
export async function sendFiles(
  { calls, engine, store }: FileSenderParts,
  key: ReplicaKey,
  run: TransferRun,
  onSent: (sent: number, total: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const { collection, term, transfer, uid } = run;
  const folder = store.staging(`checkpoint-${uid}-${transfer.shardId}-${transfer.startedAt}`);
  await rm(folder, { recursive: true, force: true });
  try {
    const { files } = await engine.checkpoint(key, folder);
    const address = { shard: { collection, uid, shardId: transfer.shardId }, clock: term, startedAt: transfer.startedAt };
    const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    let sent = 0;
    onSent(0, total);
    for (const file of files) {
      for await (const { bytes, offset } of partsOf(folder, file)) {
        if (signal.aborted) throw new TroupeError('unavailable', 'the transfer has ended');
        await calls.call(transfer.to, { kind: 'putFile', ...address, path: file.path, offset, bytes }, PART_MS);
        sent += bytes.length;
        onSent(sent, total);
      }
    }
    await calls.call(transfer.to, { kind: 'installFiles', ...address, files }, INSTALL_MS);
  } finally {
    await engine.releaseCheckpoint(key).catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
}

/** An empty file is one part, too. */
async function* partsOf(
  folder: string,
  file: ReplicaCheckpoint['files'][number],
): AsyncGenerator<{ readonly offset: number; readonly bytes: Uint8Array }> {
  const handle = await open(join(folder, file.path), 'r');
  try {
    let offset = 0;
    do {
      const part = new Uint8Array(Math.min(PART_BYTES, file.bytes - offset));
      const { bytesRead } = await handle.read(part, 0, part.length, offset);
      if (bytesRead < part.length) throw new TroupeError('storage', `${file.path} of the checkpoint is shorter than it was`);
      yield { offset, bytes: part };
      offset += part.length;
    } while (offset < file.bytes);
  } finally {
    await handle.close();
  }
}

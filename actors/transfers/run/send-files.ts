/** The leader's side of a `snapshot` transfer: a checkpoint of its replica, file by file, to the target. */

import type { PeerCalls } from '../../../cluster/data-messages.js';
import type { TransferRun } from '../../../cluster/transfer/runs.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { ReplicaKey, ReplicaStats } from '../../../storage/threads/messages.js';
import type { ShardLogPort } from '../../../storage/threads/shard-log.js';
import { partsOfFile } from '../../collection/staged-files.js';
import type { CollectionStore } from '../../collection/store.js';

const PART_MS = 30_000;
/** The target opens the replica, which may take as long as reading it. */
const INSTALL_MS = 600_000;

export interface FileSenderParts {
  readonly engine: Pick<ShardLogPort, 'checkpoint' | 'releaseCheckpoint'> & { stats(key: ReplicaKey): ReplicaStats | null };
  readonly calls: PeerCalls;
  readonly store: Pick<CollectionStore, 'staging' | 'staged'>;
}

/**
 * Resolves when the target has installed the files. The leader's replica stays in use meanwhile. Errors: those of the engine, the disk, the
 * target; `unavailable` with the reason `checkpointLost` as soon as the files are in vain (Transfer-M13).
 */
export async function sendFiles(
  { calls, engine, store }: FileSenderParts,
  key: ReplicaKey,
  run: TransferRun,
  onSent: (sent: number, total: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const { collection, term, transfer, uid } = run;
  const folder = store.staging(`checkpoint-${uid}-${transfer.shardId}-${transfer.startedAt}`);
  await store.staged.remove(folder);
  let made = false;
  try {
    const { files } = await engine.checkpoint(key, folder, true);
    made = true;
    const address = { shard: { collection, uid, shardId: transfer.shardId }, term, startedAt: transfer.startedAt };
    const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    let sent = 0;
    onSent(0, total);
    for (const file of files) {
      for await (const { bytes, offset } of partsOfFile(store.staged, folder, file)) {
        if (signal.aborted) throw new TroupeError('unavailable', 'the transfer has ended');
        if (engine.stats(key)?.lostCheckpoint === true) throw checkpointLost();
        await calls.call(transfer.to, { kind: 'putFile', ...address, path: file.path, offset, bytes }, PART_MS);
        sent += bytes.length;
        onSent(sent, total);
      }
    }
    await calls.call(transfer.to, { kind: 'installFiles', ...address, files }, INSTALL_MS);
  } finally {
    // One that was refused is another transfer's, which needs what the log keeps for it.
    if (made) await engine.releaseCheckpoint(key).catch(() => {});
    await store.staged.remove(folder);
  }
}

function checkpointLost(): TroupeError {
  const detail = 'while the files were sent, more was written than the logs of this node may keep (`storage.log_budget_mb`)';
  return new TroupeError('unavailable', detail, { reason: 'checkpointLost' });
}

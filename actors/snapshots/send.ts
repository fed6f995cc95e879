/** Brings restored files to the node that leads their shard. */

import type { DataAnswer, DataCall, PeerCalls, ShardAddress } from '../../cluster/data-messages.js';
import { errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { LogTag } from '../../protocols/model/shard-log.js';
import type { ArchiveShard } from '../../storage/archive/manifest.js';
import { isCheckpointPath, partsOfFile } from '../collection/staged-files.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import { installShards } from './install.js';
import type { ReceivedParts } from './received-parts.js';

export type RestoreCall = Extract<DataCall, { kind: 'putRestored' | 'installRestored' | 'installUntil' }>;

const PART_MS = 30_000;
const INSTALL_MS = 600_000;
/** No names of folders but those that `restoreId` makes. */
const RESTORE = /^[0-9a-f-]{8,64}$/;

export interface SentShard {
  readonly shard: ShardAddress;
  readonly to: PeerId;
  /** Names this restore on all nodes. */
  readonly restore: string;
  readonly archived: ArchiveShard;
  readonly folder: string;
  /** See `RestoredShard.to`. */
  readonly upTo: LogTag | null;
}

/** Resolves when the shard's leader has installed the files. Errors: those of `installShards` there, and of the calls. */
export async function sendRestored(
  { calls, store }: { readonly calls: PeerCalls; readonly store: Pick<NodeServices['store'], 'staged'> },
  { archived, folder, restore, shard, to, upTo }: SentShard,
  onSent: (bytes: number) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const file of archived.files)
    for await (const { bytes, offset } of partsOfFile(store.staged, folder, file)) {
      signal.throwIfAborted();
      await calls.call(to, { kind: 'putRestored', shard, restore, path: file.path, offset, bytes }, PART_MS);
      onSent(bytes.length);
    }
  const { at, files } = archived;
  await (upTo === null
    ? calls.call(to, { kind: 'installRestored', shard, restore, at, files }, INSTALL_MS)
    : calls.call(to, { kind: 'installUntil', shard, restore, at, to: upTo, files }, INSTALL_MS));
}

/**
 * The side of the shard's leader: `done` when a part is written, or the files are installed. Parts whose sender sends no more are removed after a while. Errors: those of
 * `installShards`; `outOfDisk`; `wrongInput`.
 */
export async function receiveRestored(
  services: NodeServices,
  entry: CollectionEntry,
  received: ReceivedParts,
  call: RestoreCall,
  dateMs: number,
): Promise<DataAnswer> {
  const { restore, shard } = call;
  if (!RESTORE.test(restore)) throw errorFromFacts({ code: 'wrongInput', detail: `a restore is not called ${restore}` });
  const assignment = services.assignments.of(shard);
  if (assignment?.leader !== services.assignments.peerId)
    throw new TroupeError('conflict', `shard ${shard.shardId} of ${shard.collection} is not led here`, { reason: 'notLeader' });
  const folder = services.store.staging(`restored-${shard.uid}-${shard.shardId}-${restore}`);
  if (call.kind === 'putRestored') {
    checkPath(call.path);
    services.copyRoom.require(call.bytes.length);
    received.expectMore(folder);
    await services.store.staged.write(folder, call.path, call.offset, call.bytes);
  } else {
    for (const { path } of call.files) checkPath(path);
    received.settle(folder);
    const ready = await services.store.staged.settle(folder, call.files);
    try {
      const to = call.kind === 'installUntil' ? call.to : null;
      await installShards(services, entry, [{ shardId: shard.shardId, folder: ready, at: call.at, to }], true, dateMs);
    } finally {
      await services.store.staged.remove(ready);
    }
  }
  return { kind: 'done', changed: 0 };
}

function checkPath(path: string): void {
  if (!isCheckpointPath(path)) throw errorFromFacts({ code: 'wrongInput', detail: `a replica has no file ${path}` });
}

/** The target's side of a `snapshot` transfer: parts of files are put together beside the replica, then take its place. */

import type { DataAnswer, DataCall, ShardAddress } from '../../../cluster/data-messages.js';
import type { IncomingFiles } from '../../../cluster/transfer/runs.js';
import { errorFromFacts, TroupeError } from '../../../protocols/errors.js';
import { isCheckpointPath } from '../../collection/staged-files.js';
import { checkLife } from '../../context/readable.js';
import type { NodeServices } from '../../context/services.js';
import type { CollectionEntry } from '../../context/view.js';

export type FileCall = Extract<DataCall, { kind: 'putFile' | 'installFiles' }>;

const INSTALL_MS = 600_000;

/**
 * `done` when the part is written, or the files are in place, synced, and the replica is open with them. Errors: `conflict` unless
 * the replica is agreed to wait for these files (PartialSnapshot) in this term; `outOfDisk`, `outOfMemory`; `storage`; `wrongInput`.
 */
export async function receiveFiles(services: NodeServices, entry: CollectionEntry, call: FileCall): Promise<DataAnswer> {
  const { term, shard, startedAt } = call;
  checkLife(entry, shard.shardId, check(services, shard, term, startedAt));
  // Before anything is sent in vain.
  if (!entry.replicas.has(shard.shardId))
    throw new TroupeError('conflict', `shard ${shard.shardId} of ${shard.collection} is not on this node, or not yet`);
  const name = `transfer-${shard.uid}-${shard.shardId}-${startedAt}`;
  const folder = services.store.staging(name);
  if (call.kind === 'putFile') {
    services.copyRoom.require(call.bytes.length);
    await services.store.staged.write(folder, checked(call.path), call.offset, call.bytes);
  } else await install(services, entry, folder, call);
  return { kind: 'done', changed: 0 };
}

/** Files never take the place of what is Active: only of what waits for them. The answer: since when that is there. */
function check({ assignments }: NodeServices, shard: ShardAddress, term: number, startedAt: number): number {
  const assignment = assignments.of(shard);
  const state = assignment?.replicas.get(assignments.peerId);
  const where = `the replica of shard ${shard.shardId} of ${shard.collection}`;
  if (assignment === null || state !== 'PartialSnapshot') throw new TroupeError('conflict', `${where} waits for no files`);
  if (assignment.term !== term) throw new TroupeError('conflict', `${where} is of term ${assignment.term}, not ${term}`);
  if (!assignment.transfers.some((transfer) => transfer.to === assignments.peerId && transfer.startedAt === startedAt))
    throw new TroupeError('conflict', `${where} waits for the files of another transfer`);
  return assignment.since.get(assignments.peerId) ?? 0;
}

async function install(
  services: NodeServices,
  entry: CollectionEntry,
  folder: string,
  { files, shard }: Extract<FileCall, { kind: 'installFiles' }>,
): Promise<void> {
  const replica = entry.replicas.get(shard.shardId);
  if (replica === undefined)
    throw new TroupeError('conflict', `shard ${shard.shardId} of ${shard.collection} is not on this node, or not yet`);
  for (const { path } of files) checked(path);
  // Who hears no answer sends everything anew, while this one goes on.
  const ready = await services.store.staged.settle(folder, files);
  await replica.actor.ask<boolean>((replyTo) => ({ kind: 'install', staged: ready, replyTo }), INSTALL_MS);
}

function checked(path: string): string {
  if (!isCheckpointPath(path)) throw errorFromFacts({ code: 'wrongInput', detail: `a checkpoint has no file ${path}` });
  return path;
}

/** What is left of a transfer whose files are not waited for any more. */
export async function discardFiles({ store }: Pick<NodeServices, 'store'>, { shardId, startedAt, uid }: IncomingFiles): Promise<void> {
  await store.staged.remove(store.staging(`transfer-${uid}-${shardId}-${startedAt}`));
}

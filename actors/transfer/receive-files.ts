/** The target's side of a `snapshot` transfer: parts of files are put together beside the replica, then take its place. */

import { mkdir, open, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DataAnswer, DataCall, ShardAddress } from '../../cluster/data-messages.js';
import type { IncomingFiles } from '../../cluster/transfer/runs.js';
import { errorFromFacts, TroupeError } from '../../protocols/errors.js';
import { syncFolder } from '../checked-file.js';
import type { NodeServices } from '../node/services.js';
import type { CollectionEntry } from '../node/view.js';

export type FileCall = Extract<DataCall, { kind: 'putFile' | 'installFiles' }>;

const INSTALL_MS = 600_000;

/** Names of files that a checkpoint may have: nothing leads out of the folder. */
const PATH = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[\w.-]+(?:\/[\w.-]+)*$/;

/**
 * `done` when the part is written, or the files are in place, synced, and the replica is open with them. Errors: `conflict` unless
 * the replica is agreed to wait for these files (PartialSnapshot) in this term; `storage`; `wrongInput`.
 */
export async function receiveFiles(services: NodeServices, entry: CollectionEntry, call: FileCall): Promise<DataAnswer> {
  const { clock, shard, startedAt } = call;
  check(services, shard, clock, startedAt);
  // Before anything is sent in vain.
  if (!entry.replicas.has(shard.shardId))
    throw new TroupeError('conflict', `shard ${shard.shardId} of ${shard.collection} is not on this node, or not yet`);
  const name = `transfer-${shard.uid}-${shard.shardId}-${startedAt}`;
  const folder = services.store.staging(name);
  if (call.kind === 'putFile') await putPart(folder, call);
  else await install(services, entry, folder, call);
  return { kind: 'done', changed: 0 };
}

/** Files never take the place of what is Active: only of what waits for them. */
function check({ assignments }: NodeServices, shard: ShardAddress, clock: number, startedAt: number): void {
  const assignment = assignments.of(shard);
  const state = assignment?.replicas.get(assignments.peerId);
  const where = `the replica of shard ${shard.shardId} of ${shard.collection}`;
  if (assignment === null || state !== 'PartialSnapshot') throw new TroupeError('conflict', `${where} waits for no files`);
  if (assignment.term !== clock) throw new TroupeError('conflict', `${where} is of term ${assignment.term}, not ${clock}`);
  if (!assignment.transfers.some((transfer) => transfer.to === assignments.peerId && transfer.startedAt === startedAt))
    throw new TroupeError('conflict', `${where} waits for the files of another transfer`);
}

async function putPart(folder: string, { bytes, offset, path }: Extract<FileCall, { kind: 'putFile' }>): Promise<void> {
  const file = fileIn(folder, path);
  await mkdir(dirname(file), { recursive: true });
  // A transfer that begins anew sends each file from its beginning.
  const handle = await open(file, offset === 0 ? 'w' : 'r+');
  try {
    let written = 0;
    while (written < bytes.length) {
      const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, offset + written);
      written += bytesWritten;
    }
  } catch (error) {
    throw new TroupeError('storage', `${path} cannot be written: ${String(error)}`, { cause: error });
  } finally {
    await handle.close();
  }
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
  for (const { bytes, path } of files) await syncFile(folder, path, bytes);
  await syncFolders(folder, files);
  await replica.actor.ask<boolean>((replyTo) => ({ kind: 'install', staged: folder, replyTo }), INSTALL_MS);
}

async function syncFile(folder: string, path: string, bytes: number): Promise<void> {
  const file = fileIn(folder, path);
  const found = await stat(file).catch(() => null);
  if (found?.size !== bytes) throw new TroupeError('storage', `${path} has arrived with ${found?.size ?? 'no'} of ${bytes} bytes`);
  const handle = await open(file, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function syncFolders(folder: string, files: readonly { readonly path: string }[]): Promise<void> {
  const folders = new Set([folder]);
  for (const { path } of files) {
    for (let below = dirname(path); below !== '.'; below = dirname(below)) folders.add(join(folder, below));
  }
  for (const one of folders) await syncFolder(one);
}

function fileIn(folder: string, path: string): string {
  if (!PATH.test(path)) throw errorFromFacts({ code: 'wrongInput', detail: `a checkpoint has no file ${path}` });
  return join(folder, path);
}

/** What is left of a transfer whose files are not waited for any more. */
export async function discardFiles({ store }: Pick<NodeServices, 'store'>, { shardId, startedAt, uid }: IncomingFiles): Promise<void> {
  await rm(store.staging(`transfer-${uid}-${shardId}-${startedAt}`), { recursive: true, force: true });
}

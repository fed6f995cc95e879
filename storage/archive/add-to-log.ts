/** Gives the copy of a replica operations to go on with: the replica applies them when it is opened with the copy. */

import { rmSync } from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import type { ShardEntry } from '../../protocols/model/shard-log.js';
import { AppendFolder } from '../disk/append-file.js';
import { initChecksum } from '../disk/checksum.js';
import { markMade } from '../disk/format-marker.js';
import { Environment } from '../disk/lmdb.js';
import { FORMAT } from '../replica/formats.js';
import { decodeShared } from '../requests/decode-update.js';
import { damagedRecord, decodeReplicaState, STATE_KEY } from '../wal/records.js';
import { WriteAheadLog } from '../wal/wal.js';

/**
 * Adds operations to the log of a copy, behind what it has. folder: a checkpoint's files, which nobody has open; the operations are on disk when it
 * resolves. params: of the collection that the copy will be opened in. Errors: `wrongInput` for operations on vectors that the collection does not
 * have, as the replica could not be opened then; `storage`.
 */
export async function addToLog(folder: string, entries: readonly ShardEntry[], params: CollectionParams): Promise<void> {
  await initChecksum();
  const operations = decoded(entries, params);
  const lmdb = path.join(folder, 'lmdb');
  const copy = Environment.open(lmdb, () => {
    throw new TroupeError('storage', `the copy in ${lmdb} is empty`);
  });
  try {
    const { appliedOperation } = decodeReplicaState(copy.get('meta', STATE_KEY) ?? missing('state'));
    const files = new AppendFolder(path.join(folder, 'wal'));
    const wal = new WriteAheadLog(copy, files, appliedOperation, (warning) => {
      throw new TroupeError('storage', warning);
    });
    copy.write(() => {
      for (const [at, { tag, timeMs = null }] of entries.entries())
        wal.append(tag.index, tag, operations[at] as (typeof operations)[number], Number.POSITIVE_INFINITY, timeMs);
      wal.flush();
      files.sync();
    });
    wal.keep();
    wal.close();
    markMade(folder, FORMAT);
  } finally {
    await copy.close();
  }
  // It says which process has the file open, and this one has not any more.
  rmSync(path.join(lmdb, 'lock.mdb'), { force: true });
}

function decoded(entries: readonly ShardEntry[], params: CollectionParams): ReturnType<typeof decodeShared> {
  try {
    return decodeShared(
      entries.map(({ operation }) => operation),
      params,
    );
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'unavailable') throw error;
    throw new TroupeError('wrongInput', `the log has operations on vectors that the collection does not have any more: ${error.detail}`, {
      cause: error,
    });
  }
}

function missing(record: string): never {
  throw damagedRecord(`meta/${record}`);
}

/** Gives the copy of a replica another place in its shard's log, before a replica opens with it. */

import { rmSync } from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import type { LogTag } from '../../protocols/model/shard-log.js';
import { initChecksum } from '../disk/checksum.js';
import { Environment } from '../disk/lmdb.js';
import { decodeLogTags, encodeLogTags, LOG_KEY, logBehind } from '../wal/log-tags.js';
import { damagedRecord, decodeReplicaState, encodeReplicaState, STATE_KEY } from '../wal/records.js';

/**
 * Makes the log of the copy begin after `at`, as if all that is in the copy were the effect of that operation. folder: a checkpoint's files,
 * which nobody has open; they are on disk when it resolves. at: no lower than the copy's own last operation, as versions of points are
 * numbers of operations. timeMs: the date of that operation. Errors: `storage`.
 */
export async function beginLogAfter(folder: string, at: LogTag, timeMs: number): Promise<void> {
  await initChecksum();
  const lmdb = path.join(folder, 'lmdb');
  const copy = Environment.open(lmdb, () => {
    throw new TroupeError('storage', `the copy in ${lmdb} is empty`);
  });
  try {
    const state = decodeReplicaState(copy.get('meta', STATE_KEY) ?? missing('state'));
    const log = copy.get('meta', LOG_KEY);
    const failed = log === undefined ? 0 : decodeLogTags(log).failed;
    copy.write(() => {
      copy.put('meta', STATE_KEY, encodeReplicaState({ ...state, appliedOperation: at.index }));
      copy.put('meta', LOG_KEY, encodeLogTags(logBehind(at, failed, timeMs)));
    });
  } finally {
    await copy.close();
  }
  // It says which process has the file open, and this one has not any more.
  rmSync(path.join(lmdb, 'lock.mdb'), { force: true });
}

function missing(record: string): never {
  throw damagedRecord(`meta/${record}`);
}

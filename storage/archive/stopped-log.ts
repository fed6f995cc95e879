/** Reads the log of a replica that nobody has open. */

import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { AppendFolder } from '../disk/append-file.js';
import { initChecksum } from '../disk/checksum.js';
import { checkFormat } from '../disk/format-marker.js';
import { Environment } from '../disk/lmdb.js';
import { READABLE_FORMATS } from '../replica/formats.js';
import { damagedRecord, decodeReplicaState, STATE_KEY } from '../wal/records.js';
import { WriteAheadLog } from '../wal/wal.js';

/**
 * Calls `use` with the log of the replica in `folder`, whose LMDB file has been checked. Nothing changes but LMDB's lock file. Errors: `storage`; those of
 * `use`.
 */
export async function withStoppedLog<Value>(folder: string, use: (log: WriteAheadLog) => Promise<Value>): Promise<Value> {
  await initChecksum();
  if (checkFormat(folder, ...READABLE_FORMATS) === null) throw new TroupeError('storage', `${folder} was never made to the end`);
  const environment = Environment.open(path.join(folder, 'lmdb'), () => {
    throw new TroupeError('storage', `${folder}/lmdb/data.mdb is empty`);
  });
  try {
    const state = environment.get('meta', STATE_KEY);
    if (state === undefined) throw damagedRecord('meta/state');
    const files = AppendFolder.forReading(path.join(folder, 'wal'));
    return await use(new WriteAheadLog(environment, files, decodeReplicaState(state).appliedOperation, () => {}));
  } finally {
    await environment.close();
  }
}

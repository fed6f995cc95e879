/** For nodes that are started without a place for snapshots (tests, simulations): every call is refused. */

import { TroupeError } from '../../protocols/errors.js';
import type { ArchivePort } from '../../storage/archive/port.js';
import { NO_SNAPSHOT_FIGURES, type SnapshotApi } from './snapshot-api.js';

const refuse = (): never => {
  throw new TroupeError('unsupported', 'this node was started without a place for snapshots');
};
const reject = async (): Promise<never> => refuse();

export const NO_SNAPSHOTS: SnapshotApi = {
  figures: () => NO_SNAPSHOT_FIGURES,
  check: refuse,
  list: reject,
  describe: reject,
  create: reject,
  remove: reject,
  open: reject,
  stream: reject,
  upload: reject,
  restoreUploaded: reject,
  recover: reject,
};

export const NO_ARCHIVES: ArchivePort = {
  pack: reject,
  packStream: reject,
  unpack: reject,
  manifestOf: reject,
  hash: reject,
  beginLogAfter: reject,
  addToLog: reject,
  close: async () => {},
};

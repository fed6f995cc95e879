/** Restores snapshots before a node opens its collections: `--snapshot`, `--storage-snapshot` and `troupe restore`. Loaded where that is asked for. */

import { restoreAtStart, type StartRestore, type StartRestoreParts } from '../actors/snapshots/restore-at-start.js';
import { marksOfFolder } from '../storage/disk/disk-watch.js';
import { dateMs } from '../storage/threads/clock.js';
import { verifyReplicas } from '../storage/verify/verify-lmdb.js';
import type { NodeSettings } from './config/settings.js';

/** `--snapshot` and `--storage-snapshot`. The storage folder is this process's, and nothing is open. Errors: as `restoreAtStart`. */
export async function restoreBeforeStart({ storage }: NodeSettings, restore: StartRestore, log: StartRestoreParts['log']): Promise<void> {
  const { freeBytesMin } = marksOfFolder(storage.storage_path, storage.disk_free_min_mb, storage.disk_reserve_mb);
  await restoreAtStart({ storagePath: storage.storage_path, verify: verifyReplicas, freeBytesMin, log, nowMs: dateMs() }, restore);
}

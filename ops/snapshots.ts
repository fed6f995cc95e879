/** What a node has for snapshots, from its settings. */

import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { LocateArchive, SnapshotOptions } from '../actors/snapshots/snapshots.js';
import { crypto } from '../protocols/late-modules.js';
import { ArchiveThread } from '../storage/archive/archive-thread.js';
import type { DiskMarks } from '../storage/disk/disk-room.js';
import { localArchivePath, readArchiveLocation, requireUrlRecovery } from '../storage/snapshot-store/archive-location.js';
import { fetchArchive } from '../storage/snapshot-store/fetch-archive.js';
import { checkArchive } from './check-archive.js';
import { accessSettings } from './config/access-settings.js';
import type { NodeSettings } from './config/settings.js';
import { snapshotStoreFor, snapshotUrlsAllowed } from './config/snapshot-settings.js';
import type { ModuleLog } from './log.js';

/** With the thread that works on archives, which is watched with those of the engine. */
export type OwnSnapshotOptions = SnapshotOptions & { readonly archive: ArchiveThread };

/** dateMs: the system's date. */
export function snapshotOptions(
  settings: NodeSettings,
  { freeBytesMin }: DiskMarks,
  version: string,
  dateMs: () => number,
  log: ModuleLog,
): OwnSnapshotOptions {
  return {
    store: snapshotStoreFor(settings, freeBytesMin, dateMs),
    archive: new ArchiveThread({
      silenceMs: settings.storage.performance.thread_silence_sec * 1000,
      onLost: (reason) => log.error('the thread that works on archives was lost: what it had begun has failed', { error: reason }),
    }),
    tempFolder: tempFolderOf(settings),
    version,
    freeBytesMin,
    locate: locator(settings, freeBytesMin, log),
    dateMs,
    checkArchive,
  };
}

/** One for each storage folder, as nodes may share `storage.temp_path`. */
function tempFolderOf({ storage }: NodeSettings): string {
  const { storage_path: storagePath, temp_path: tempPath } = storage;
  if (tempPath === null || tempPath === '') return join(storagePath, 'temp');
  const name = crypto().createHash('sha256').update(resolve(storagePath)).digest('hex').slice(0, 16);
  return join(tempPath, `troupe-${name}`);
}

function locator(settings: NodeSettings, freeBytesMin: number, log: ModuleLog): LocateArchive {
  const allowed = snapshotUrlsAllowed(settings);
  const { service, storage } = settings;
  const guarded = accessSettings(settings) !== null;
  return async (text, { apiKey, peers, signal, tempFolder }) => {
    const location = readArchiveLocation(text);
    if (location.kind === 'file') return { path: await localArchivePath(location.path, storage.snapshots_path), release: async () => {} };
    requireUrlRecovery(service.enable_snapshot_url_recovery);
    const file = join(tempFolder, `${crypto().randomUUID()}.tmp`);
    const warn = (message: string, facts: Readonly<Record<string, string>>) => log.warn(message, facts);
    await fetchArchive({ url: location.url, file, apiKey, freeBytesMin }, { guarded, allowed, peers }, { warn }, signal);
    return { path: file, release: () => rm(file, { force: true }) };
  };
}

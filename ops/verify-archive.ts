/** `troupe verify` of a file: looks through the archive of a snapshot, and prints what is wrong. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CollectionConfig } from '../protocols/model/collection.js';
import type { JsonValue } from '../protocols/model/payload.js';
import type { ArchiveCollection } from '../storage/archive/manifest.js';
import type { UnpackedArchive } from '../storage/archive/port.js';
import { type ArchiveChecks, verifyArchive } from '../storage/archive/verify.js';
import { initChecksum } from '../storage/disk/checksum.js';
import { verifyShard } from '../storage/verify/verify-shard.js';

export interface ArchiveReport {
  /** Null if it could not be read to its end. */
  readonly archive: UnpackedArchive | null;
  readonly problems: number;
  /** Problems of the archive's own bytes: it cannot be restored. */
  readonly damages: number;
}

/**
 * print: gets a line for each problem. unpackIn: a folder in which each shard is unpacked and looked through as in a storage folder; null: the
 * archive's own checks only.
 */
export async function verifyArchiveFile(file: string, unpackIn: string | null, print: (line: string) => void): Promise<ArchiveReport> {
  await initChecksum();
  let problems = 0;
  let damages = 0;
  const tell = (line: string, cause: 'archive' | 'machine' | 'shard'): void => {
    problems++;
    if (cause === 'archive') damages++;
    print(line);
  };
  if (unpackIn === null) return { archive: await verifyArchive(file, { tell }), problems, damages };
  const temporary = mkdtempSync(join(unpackIn, 'troupe-verify-'));
  try {
    const tellShard = (line: string): void => tell(line, 'shard');
    return { archive: await verifyArchive(file, { tell, shards: { temporary, lookThrough: lookThrough(tellShard) } }), problems, damages };
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** What an archive has, and what tells it from others. */
export function describeArchive({ bytes, manifest, sha256 }: UnpackedArchive): string {
  const { collections, createdAt, kind, version } = manifest;
  const shards = collections.flatMap((collection) => collection.shards);
  const points = shards.reduce((sum, shard) => sum + shard.points, 0);
  const what = `${collections.length} collections, ${shards.length} shards, ${points} points`;
  return `${what} of a ${kind} snapshot (${bytes} bytes, SHA-256 ${sha256}, made ${createdAt} by release ${version})`;
}

/** Where shards are unpacked: in the folder for temporary files of the settings, or of the system. */
export function temporaryFolder(setting: string | null): string {
  return setting === null || setting === '' ? tmpdir() : setting;
}

function lookThrough(tell: (line: string) => void): NonNullable<ArchiveChecks['shards']>['lookThrough'] {
  return async (collection, { id, points }, folder) => {
    const place = `${collection.name}/${id}`;
    const config = configOf(collection);
    if (config === null) {
      tell(`${place}: the archive does not have the collection's configuration; the shard is not looked through`);
      return;
    }
    const report = await verifyShard(folder, config);
    for (const problem of report.problems) tell(`${place}: ${problem}`);
    if (report.problems.length === 0 && report.points !== points)
      tell(`${place}: the shard has ${report.points} points, and the manifest says ${points}`);
  };
}

/** The configuration within a collection's description. */
function configOf({ description }: ArchiveCollection): CollectionConfig | null {
  const config = memberOf(description, 'config');
  return memberOf(config, 'params') === null ? null : (config as unknown as CollectionConfig);
}

function memberOf(value: JsonValue, name: string): JsonValue {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && Object.hasOwn(value, name) ? (value[name] ?? null) : null;
}

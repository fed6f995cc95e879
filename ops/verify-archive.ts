/** `troupe verify` of a file: looks through the archive of a snapshot, and prints what is wrong. */

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { errorFacts } from '../protocols/errors.js';
import { rethrowBroken } from '../protocols/invariant.js';
import type { CollectionConfig } from '../protocols/model/collection.js';
import type { JsonValue } from '../protocols/model/payload.js';
import { basesBeside } from '../storage/archive/bases.js';
import type { ArchiveCollection, ArchiveManifest } from '../storage/archive/manifest.js';
import { unpackedShard } from '../storage/archive/members.js';
import type { BaseFile, UnpackedArchive } from '../storage/archive/port.js';
import { manifestOfFile } from '../storage/archive/read-archive.js';
import { readBases } from '../storage/archive/read-base.js';
import { unpackArchive } from '../storage/archive/unpack.js';
import { type ArchiveChecks, verifyArchive } from '../storage/archive/verify.js';
import { initChecksum } from '../storage/disk/checksum.js';
import { verifyShard } from '../storage/verify/verify-shard.js';

export interface ArchiveReport {
  /** Null if it could not be read to its end. */
  readonly archive: UnpackedArchive | null;
  readonly problems: number;
  /** Problems of the archive's own bytes: it cannot be restored. */
  readonly damages: number;
  /** The name of a base that it needs and that does not lie beside it: its files are not looked at. */
  readonly missingBase: string | null;
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
  const tellShard = (line: string): void => tell(line, 'shard');
  const bases = await basesOf(file, (line) => tell(line, 'archive'));
  const missingBase = bases.missing;
  if (missingBase !== null)
    print(`the snapshot needs its base ${missingBase}, which does not lie beside it: only its own files are looked through`);
  if (bases.manifest === null) {
    if (unpackIn === null) return { archive: await verifyArchive(file, { tell }), problems, damages, missingBase };
    const archive = await inTemporary(unpackIn, (temporary) =>
      verifyArchive(file, { tell, shards: { temporary, lookThrough: lookThrough(tellShard) } }),
    );
    return { archive, problems, damages, missingBase };
  }
  const archive = await verifyArchive(file, { tell });
  if (archive === null || missingBase !== null || problems > 0) return { archive, problems, damages, missingBase };
  print(`its base ${bases.manifest.base?.name} lies beside it, and is looked into`);
  try {
    if (unpackIn === null) await readBases(archive.manifest, bases.files, null, {});
    else await inTemporary(unpackIn, (temporary) => lookThroughAll(file, bases.files, join(temporary, 'whole'), tellShard));
  } catch (error) {
    rethrowBroken(error);
    // The archive's own bytes are sound.
    tell(errorFacts(error).detail, 'machine');
  }
  return { archive, problems, damages, missingBase };
}

interface BasesOfFile {
  /** Null for an archive without a base, and for one whose manifest cannot be read: why is found out later. */
  readonly manifest: ArchiveManifest | null;
  readonly files: readonly BaseFile[];
  readonly missing: string | null;
}

async function basesOf(file: string, tell: (problem: string) => void): Promise<BasesOfFile> {
  const none = { files: [], missing: null };
  const manifest = await manifestOfFile(file).catch(() => null);
  if (manifest?.base === undefined) return { ...none, manifest: null };
  let missing: string | null = null;
  try {
    const files = await basesBeside(file, manifest, async (base) => {
      if (existsSync(base)) return manifestOfFile(base);
      missing = basename(base);
      return null;
    });
    return { manifest, files, missing: null };
  } catch (error) {
    rethrowBroken(error);
    if (missing === null) tell(errorFacts(error).detail);
    return { ...none, manifest, missing };
  }
}

async function inTemporary<Value>(folder: string, use: (temporary: string) => Promise<Value>): Promise<Value> {
  const temporary = mkdtempSync(join(folder, 'troupe-verify-'));
  try {
    return await use(temporary);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Unpacks an archive with its bases, and looks through all of its shards. */
async function lookThroughAll(file: string, bases: readonly BaseFile[], folder: string, tell: (problem: string) => void): Promise<void> {
  const limits = { bytesMax: Number.MAX_SAFE_INTEGER, freeBytesMin: 0 };
  const { manifest } = await unpackArchive({ from: file, bases, folder, limits, expectedSha256: null });
  const look = lookThrough(tell);
  for (const [at, collection] of manifest.collections.entries())
    for (const shard of collection.shards) await look(collection, shard, unpackedShard(folder, at, shard.id));
}

/** What an archive has, and what tells it from others. */
export function describeArchive({ bytes, manifest, sha256 }: UnpackedArchive): string {
  const { base, collections, createdAt, kind, version } = manifest;
  const shards = collections.flatMap((collection) => collection.shards);
  const points = shards.reduce((sum, shard) => sum + shard.points, 0);
  const what = `${collections.length} collections, ${shards.length} shards, ${points} points`;
  return `${what} of a ${kind} snapshot (${bytes} bytes, SHA-256 ${sha256}, made ${createdAt} by release ${version}${base === undefined ? '' : `, on the base ${base.name}`})`;
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

/** Archives that leave out what another one has, their base (Archive-T5): which bases one needs, and what a base has. */

import { dirname, join } from 'node:path';
import type { ShardId } from '../../protocols/model/cluster.js';
import { ArchiveError } from './archive-error.js';
import type { ArchiveBase, ArchiveFile, ArchiveManifest } from './manifest.js';
import { BLOCK_BYTES } from './members.js';
import type { BaseFile } from './port.js';

/** An archive with so many bases below it is the last one of its chain. */
export const BASES_MAX = 32;

/** So many of the first bytes of an archive say which base it has. */
export const BASE_START_BYTES = 4 * BLOCK_BYTES;

const START =
  /^\{"format":1,"checksum":"[0-9a-f]{16}","manifest":\{"format":2,"base":(\{"name":"(?:[^"\\]|\\.)*","sha256":"[0-9a-f]{64}"\}),/;

/**
 * The base of an archive by its first bytes; null without one. For lists: whoever restores reads the whole manifest, with its checksum.
 * start: `BASE_START_BYTES`, or the whole archive.
 */
export function baseAtStart(start: Buffer): ArchiveBase | null {
  const found = START.exec(start.toString('utf8', BLOCK_BYTES))?.[1];
  if (found === undefined) return null;
  const { name, sha256 } = JSON.parse(found) as ArchiveBase;
  return { name, sha256 };
}

/**
 * The bases of an archive: its own, that one's, and so on. first: the archive's own. find: null for what is not there; errors as they are.
 * Errors: `ArchiveError` `base` for one that is not there, for a ring, and for more than `BASES_MAX`.
 */
export async function chainOfBases<Found extends { readonly base: ArchiveBase | null }>(
  first: ArchiveBase | null,
  find: (base: ArchiveBase) => Promise<Found | null>,
): Promise<Found[]> {
  const chain: Found[] = [];
  const names = new Set<string>();
  for (let base = first; base !== null; ) {
    if (names.has(base.name))
      throw new ArchiveError('base', `the snapshot can never be restored: its base ${base.name} is a base of itself`);
    if (chain.length === BASES_MAX)
      throw new ArchiveError('base', `the snapshot has more than ${BASES_MAX} bases below it, which is the most that is taken`);
    names.add(base.name);
    const found = await find(base);
    if (found === null) throw missingBase(base);
    chain.push(found);
    base = found.base;
  }
  return chain;
}

export function missingBase({ name, sha256 }: ArchiveBase): ArchiveError {
  return new ArchiveError(
    'base',
    `the snapshot needs its base ${name} (SHA-256 ${sha256}), which is not there: put that file back among the snapshots of its ` +
      'collection or shard (from the command line: beside the file that is restored), and try again',
  );
}

export function otherBase({ name, sha256 }: ArchiveBase, actual: string): ArchiveError {
  return new ArchiveError(
    'base',
    `the snapshot needs its base ${name} with SHA-256 ${sha256}, and the one of this name has ${actual}: it is damaged or another one; put ` +
      'a sound copy of it back',
    { expected: sha256, actual },
  );
}

/** The bases of an archive's file that lie beside it. manifestOf: of a file; null where there is none. Errors: as `chainOfBases`. */
export async function basesBeside(
  file: string,
  { base }: ArchiveManifest,
  manifestOf: (file: string) => Promise<ArchiveManifest | null>,
): Promise<BaseFile[]> {
  const found = await chainOfBases(base ?? null, async ({ name, sha256 }) => {
    const path = join(dirname(file), name);
    const manifest = await manifestOf(path);
    return manifest === null ? null : { base: manifest.base ?? null, needed: { name, sha256, file: path } };
  });
  return found.map(({ needed }) => needed);
}

/** What tells the files of an archive with one collection from each other. */
export function fileKey(collection: number, shard: ShardId, { path }: ArchiveFile): string {
  return `${collection}/${shard}/${path}`;
}

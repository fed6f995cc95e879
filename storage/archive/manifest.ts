/**
 * What an archive says of itself: its first member, `manifest.json`. It has the name and the size of each file, so that a reader knows what
 * comes before it writes anything.
 *
 * An archive is a plain tar with these members, in this order (`members.ts` has their names):
 * - **Archive-T1** `manifest.json`, a checked file (`disk/checked-file.ts`) with an `ArchiveManifest`.
 * - **Archive-T2** The files, in the order of the manifest, each with exactly the bytes that the manifest says.
 * - **Archive-T3** `checksums.json`, a checked file with the xxHash64 of each file in the same order. An archive without it is truncated.
 * - **Archive-T4** Two blocks of zeros, and nothing behind them. A reader refuses whatever differs from this in any byte.
 * - **Archive-T5** An archive of format 2 has a base, another archive, by its name and SHA-256. Files that the base has, or that the base has of its own
 *   base, with the same path, size and checksum are no members: the manifest has the checksum of each (`inBase`).
 */

import { TroupeError } from '../../protocols/errors.js';
import type { PeerId, ShardId, ShardKey } from '../../protocols/model/cluster.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import type { LogTag } from '../../protocols/model/shard-log.js';
import { decodeChecked, encodeChecked } from '../disk/checked-file.js';
import { isSnapshotName } from '../snapshot-store/snapshot-store.js';
import { ArchiveError } from './archive-error.js';

/** The format of archives that have all of their files. */
export const ARCHIVE_FORMAT = 1;
/** The format of archives that have a base (Archive-T5), and the newest that this release reads. Older releases refuse it as a newer one. */
export const BASED_FORMAT = 2;

export type ArchiveKind = 'collection' | 'shard' | 'full';

const KINDS: ReadonlySet<unknown> = new Set<ArchiveKind>(['collection', 'shard', 'full']);

export interface ArchiveManifest {
  /** `shard`: one collection with one shard. `collection`: one collection. */
  readonly kind: ArchiveKind;
  /** Of the release that made it. */
  readonly version: string;
  /** When it was made: ISO 8601, UTC, such as `2026-11-21T01:04:22.123Z`. */
  readonly createdAt: string;
  /** The node that made it; 0 outside of a cluster. */
  readonly peer: PeerId;
  /** Empty unless the archive is `full`. */
  readonly aliases: readonly ArchiveAlias[];
  readonly collections: readonly ArchiveCollection[];
  /** The archive that has the files which this one leaves out; absent: this one has all. Only with one collection. */
  readonly base?: ArchiveBase;
}

export interface ArchiveBase {
  /** Of the snapshot, in the same list as the one that needs it. */
  readonly name: string;
  /** Of the whole archive, in hex. */
  readonly sha256: string;
}

export interface ArchiveAlias {
  readonly alias: string;
  readonly collection: string;
}

export interface ArchiveCollection {
  readonly name: string;
  /** Configuration and whatever else it takes to make the collection again. The actors know what is in it. */
  readonly description: JsonValue;
  readonly shards: readonly ArchiveShard[];
}

export interface ArchiveShard {
  readonly id: ShardId;
  /** Its shard key; null without one. */
  readonly key: ShardKey | null;
  /** Points that it has. */
  readonly points: number;
  /** The last operation of the shard's log that is in it. */
  readonly at: LogTag;
  readonly files: readonly ArchiveFile[];
}

export interface ArchiveFile {
  /** Below the shard's folder, with `/` between names: `segments/3/vectors.0`. Letters, digits and `_.%~-`; no name begins with a dot. */
  readonly path: string;
  /** The file may have more: only so many of its first bytes belong to the archive. */
  readonly bytes: number;
  /** The base has the file: the xxHash64 of its bytes, as in `checksums.json`. Absent: it is in this archive. */
  readonly inBase?: string;
}

export interface ManifestLimits {
  /** Bytes of `manifest.json`. */
  readonly manifestBytesMax: number;
  /** Files of all shards. */
  readonly filesMax: number;
}

export const MANIFEST_LIMITS: ManifestLimits = { manifestBytesMax: 64 * 2 ** 20, filesMax: 1_000_000 };

const PATH_LENGTH_MAX = 512;
const NAME_LENGTH_MAX = 255;
const TEXT_LENGTH_MAX = 1024;
const FILE_NAME = /^[A-Za-z0-9_%~-][A-Za-z0-9_.%~-]*$/;
const ISO_DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/;
/** The last moment that the header of a member can say, in the year 2242. */
const TAR_DATE_MS_MAX = 0o77777777777 * 1000;
const SHA256 = /^[0-9a-f]{64}$/;
const CHECKSUM = /^[0-9a-f]{16}$/;
const UINT32_MAX = 2 ** 32 - 1;

/**
 * The bytes of `manifest.json`. Errors: `internal` if the manifest could not be read again: the caller made a wrong one; `tooLarge` if there is
 * too much of it for one archive.
 */
export function encodeManifestFile(manifest: ArchiveManifest, limits: ManifestLimits = MANIFEST_LIMITS): Uint8Array {
  const { base, ...rest } = manifest;
  // The base comes first: `baseAtStart` finds it in the first bytes.
  const bytes = encodeChecked(
    'manifest',
    base === undefined ? { format: ARCHIVE_FORMAT, ...rest } : { format: BASED_FORMAT, base, ...rest },
  );
  try {
    if (bytes.length > limits.manifestBytesMax) throw tooLargeManifest(bytes.length, limits);
    checkedManifest(manifest, limits);
  } catch (error) {
    if (error instanceof ArchiveError && error.problem === 'tooLarge') throw error;
    throw new TroupeError('internal', `a snapshot cannot be made: ${error instanceof TroupeError ? error.detail : String(error)}`, {
      cause: error,
    });
  }
  return bytes;
}

/**
 * The manifest of the bytes of `manifest.json`. Errors: `ArchiveError`: `newer`, `manifest` if a value is none that it can have (the detail
 * names its place), `damaged`, `tooLarge`.
 */
export function decodeManifestFile(bytes: Uint8Array, limits: ManifestLimits = MANIFEST_LIMITS): ArchiveManifest {
  if (bytes.length > limits.manifestBytesMax) throw tooLargeManifest(bytes.length, limits);
  const value = checkedValue(bytes, 'manifest', 'manifest.json');
  const format = isMembers(value) && Object.hasOwn(value, 'format') ? value.format : undefined;
  if (typeof format === 'number' && Number.isInteger(format) && format > BASED_FORMAT) throw newerFormat(format);
  if (format !== ARCHIVE_FORMAT && format !== BASED_FORMAT)
    throw odd('format', `is no format of this release, which reads ${ARCHIVE_FORMAT} to ${BASED_FORMAT}`);
  const { format: _, ...rest } = value as Members;
  const manifest = checkedManifest(rest, limits);
  if ((manifest.base === undefined) !== (format === ARCHIVE_FORMAT)) throw odd('base', `is not as format ${format} has it`);
  return manifest;
}

/** The manifest of an archive whose base has brought what it leaves out. */
export function withoutBase({ base: _, ...manifest }: ArchiveManifest): ArchiveManifest {
  const whole = ({ bytes, path }: ArchiveFile): ArchiveFile => ({ path, bytes });
  const collections = manifest.collections.map((collection) => ({
    ...collection,
    shards: collection.shards.map((shard) => ({ ...shard, files: shard.files.map(whole) })),
  }));
  return { ...manifest, collections };
}

/** The files that are members of the archive, in their order. */
export function* packedFilesOf(manifest: ArchiveManifest): ReturnType<typeof filesOf> {
  for (const one of filesOf(manifest)) if (one.file.inBase === undefined) yield one;
}

/** All files of an archive in their order, with the shard that each is of. */
export function* filesOf(
  manifest: ArchiveManifest,
): Generator<{ collection: number; shard: ShardId; position: number; file: ArchiveFile }> {
  for (const [collection, { shards }] of manifest.collections.entries())
    for (const { files, id } of shards) for (const [position, file] of files.entries()) yield { collection, shard: id, position, file };
}

/** The value of a checked file within an archive. Errors: `ArchiveError`: `newer`, `damaged`. */
export function checkedValue(bytes: Uint8Array, key: string, member: string): unknown {
  const format = /^\{"format":(\d{1,9}),/.exec(Buffer.from(bytes.subarray(0, 40)).toString('latin1'))?.[1];
  if (format !== undefined && Number(format) > BASED_FORMAT) throw newerFormat(Number(format));
  try {
    return decodeChecked(bytes, key, `the member \`${member}\` of the archive`, `a ${key} file of an archive`);
  } catch (error) {
    throw new ArchiveError('damaged', error instanceof TroupeError ? error.detail : String(error), { cause: error });
  }
}

export function newerFormat(format: number): ArchiveError {
  return new ArchiveError(
    'newer',
    `the archive has format ${format}, and this release reads up to ${BASED_FORMAT}: a newer release made it, restore it there`,
  );
}

// ------------------------------------------------------------------ checks

type Members = Readonly<Record<string, unknown>>;

/** A copy with the known members alone. Errors: `ArchiveError` that names the place of what is odd. */
function checkedManifest(value: unknown, limits: ManifestLimits): ArchiveManifest {
  const members = membersOf(value, '', ['kind', 'version', 'createdAt', 'peer', 'aliases', 'collections'], ['base']);
  if (!KINDS.has(members.kind)) throw odd('kind', 'is none of `collection`, `shard` and `full`');
  const kind = members.kind as ArchiveKind;
  const createdAt = text(members.createdAt, 'createdAt');
  const createdMs = ISO_DATE.test(createdAt) ? Date.parse(createdAt) : Number.NaN;
  if (!(createdMs >= 0 && createdMs <= TAR_DATE_MS_MAX)) throw odd('createdAt', 'is no time such as `2026-11-21T01:04:22Z`');
  const aliases = list(members.aliases, 'aliases').map((one, at) => aliasOf(one, `aliases[${at}]`));
  requireDistinct(aliases, ({ alias }) => alias, 'aliases', 'alias');
  if (kind !== 'full' && aliases.length > 0) throw odd('aliases', 'is not empty, and only full archives have aliases');
  const counts = { files: 0, inBase: 0 };
  const collections = list(members.collections, 'collections').map((one, at) => collectionOf(one, `collections[${at}]`, counts, limits));
  requireDistinct(collections, ({ name }) => name, 'collections', 'name');
  if (kind !== 'full' && collections.length !== 1) throw odd('collections', `has ${collections.length} collections, and this kind has one`);
  if (kind === 'shard' && collections[0]?.shards.length !== 1)
    throw odd('collections[0].shards', 'has not exactly one shard, and this kind has one');
  const base = members.base === undefined ? undefined : baseOf(members.base);
  if (base !== undefined && kind === 'full') throw odd('base', 'is there, and full archives have none');
  if (base === undefined && counts.inBase > 0) throw odd('base', 'is not there, and files of it are');
  const total = collections.reduce((sum, { shards }) => sum + shards.reduce((bytes, { files }) => bytes + sizeOf(files), 0), 0);
  if (!Number.isSafeInteger(total)) throw odd('collections', 'has files of more bytes than there can be');
  const version = text(members.version, 'version');
  const checked = { kind, version, createdAt, peer: count(members.peer, 'peer'), aliases, collections };
  return base === undefined ? checked : { ...checked, base };
}

interface FileCounts {
  files: number;
  /** Files of the base. */
  inBase: number;
}

function baseOf(value: unknown): ArchiveBase {
  const { name, sha256 } = membersOf(value, 'base', ['name', 'sha256']);
  const checked = text(name, 'base.name');
  if (!isSnapshotName(checked)) throw odd('base.name', 'is no name of a snapshot');
  if (typeof sha256 !== 'string' || !SHA256.test(sha256)) throw odd('base.sha256', 'is no SHA-256 in hex');
  return { name: checked, sha256 };
}

function aliasOf(value: unknown, place: string): ArchiveAlias {
  const { alias, collection } = membersOf(value, place, ['alias', 'collection']);
  return { alias: text(alias, `${place}.alias`), collection: text(collection, `${place}.collection`) };
}

function collectionOf(value: unknown, place: string, counts: FileCounts, limits: ManifestLimits): ArchiveCollection {
  const { description, name, shards } = membersOf(value, place, ['name', 'description', 'shards']);
  const checked = list(shards, `${place}.shards`).map((one, at) => shardOf(one, `${place}.shards[${at}]`, counts, limits));
  requireDistinct(checked, ({ id }) => id, `${place}.shards`, 'id');
  return { name: text(name, `${place}.name`), description: description as JsonValue, shards: checked };
}

function shardOf(value: unknown, place: string, counts: FileCounts, limits: ManifestLimits): ArchiveShard {
  const members = membersOf(value, place, ['id', 'key', 'points', 'at', 'files']);
  const { at, files, id, key, points } = members;
  const given = list(files, `${place}.files`);
  counts.files += given.length;
  if (counts.files > limits.filesMax)
    throw new ArchiveError('tooLarge', `the archive has more than ${limits.filesMax} files, which is the most that is taken`);
  const checked = given.map((one, position) => fileOf(one, `${place}.files[${position}]`));
  for (const { inBase } of checked) if (inBase !== undefined) counts.inBase++;
  requireDistinct(checked, ({ path }) => path.toLowerCase(), `${place}.files`, 'path');
  requireNoFileInFile(checked, place);
  if (count(id, `${place}.id`) > UINT32_MAX) throw odd(`${place}.id`, 'is no number of a shard');
  return {
    id: id as number,
    key: keyOf(key, `${place}.key`),
    points: count(points, `${place}.points`),
    at: tagOf(at, `${place}.at`),
    files: checked,
  };
}

function fileOf(value: unknown, place: string): ArchiveFile {
  const { bytes, inBase, path } = membersOf(value, place, ['path', 'bytes'], ['inBase']);
  const name = text(path, `${place}.path`);
  if (name.length > PATH_LENGTH_MAX || !name.split('/').every((part) => part.length <= NAME_LENGTH_MAX && FILE_NAME.test(part)))
    throw odd(`${place}.path`, `is \`${name}\`, no path below a shard's folder`);
  const file = { path: name, bytes: count(bytes, `${place}.bytes`) };
  if (inBase === undefined) return file;
  if (typeof inBase !== 'string' || !CHECKSUM.test(inBase)) throw odd(`${place}.inBase`, 'is no checksum of 16 hexadecimal digits');
  return { ...file, inBase };
}

function tagOf(value: unknown, place: string): LogTag {
  const { index, peer, term } = membersOf(value, place, ['peer', 'term', 'index']);
  return { peer: count(peer, `${place}.peer`), term: count(term, `${place}.term`), index: count(index, `${place}.index`) };
}

function keyOf(value: unknown, place: string): ShardKey | null {
  if (value === null) return null;
  if (typeof value === 'string') return text(value, place);
  if (typeof value === 'bigint' && value > 0n) return value;
  return count(value, place);
}

function membersOf<Name extends string, Optional extends string = never>(
  value: unknown,
  place: string,
  names: readonly Name[],
  optional: readonly Optional[] = [],
): Readonly<Record<Name | Optional, unknown>> {
  if (!isMembers(value)) throw odd(place, 'is no object');
  const known = new Set<string>([...names, ...optional]);
  for (const name of Object.keys(value)) if (!known.has(name)) throw odd(place, `has \`${name}\`, which this release does not know`);
  for (const name of names) if (!Object.hasOwn(value, name)) throw odd(place, `lacks \`${name}\``);
  return value as Record<Name | Optional, unknown>;
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function list(value: unknown, place: string): readonly unknown[] {
  if (!Array.isArray(value)) throw odd(place, 'is no list');
  return value;
}

function text(value: unknown, place: string): string {
  if (typeof value !== 'string' || value.length === 0 || value.length > TEXT_LENGTH_MAX)
    throw odd(place, `is no text of 1 to ${TEXT_LENGTH_MAX} characters`);
  return value;
}

function count(value: unknown, place: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || Object.is(value, -0))
    throw odd(place, 'is no whole number from 0 on');
  return value;
}

function requireDistinct<T>(items: readonly T[], keyOfItem: (item: T) => unknown, place: string, name: string): void {
  const seen = new Set<unknown>();
  for (const item of items) {
    const key = keyOfItem(item);
    if (seen.has(key)) throw odd(place, `has the ${name} \`${String(key)}\` twice`);
    seen.add(key);
  }
}

/** No path goes through another one's file. */
function requireNoFileInFile(files: readonly ArchiveFile[], place: string): void {
  const names = new Set(files.map(({ path }) => path.toLowerCase()));
  for (const { path } of files)
    for (let end = path.indexOf('/'); end >= 0; end = path.indexOf('/', end + 1))
      if (names.has(path.slice(0, end).toLowerCase())) throw odd(`${place}.files`, `has \`${path}\` below another file`);
}

function sizeOf(files: readonly ArchiveFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

function tooLargeManifest(bytes: number, { manifestBytesMax }: ManifestLimits): ArchiveError {
  return new ArchiveError('tooLarge', `the manifest of the archive has ${bytes} bytes, and ${manifestBytesMax} are the most that is taken`);
}

function odd(place: string, what: string): ArchiveError {
  return new ArchiveError('manifest', `the manifest of the archive is wrong: \`${place === '' ? 'manifest' : place}\` ${what}`);
}

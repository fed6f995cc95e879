/** Which snapshots of a store need which others: those that were made with a base lack the files of it (Archive-T5). */

import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { ArchiveError } from '../../storage/archive/archive-error.js';
import { BASE_START_BYTES, baseAtStart, chainOfBases, otherBase } from '../../storage/archive/bases.js';
import type { ArchiveBase, ArchiveManifest } from '../../storage/archive/manifest.js';
import type { ArchivePort, BaseFile } from '../../storage/archive/port.js';
import { placeFolders, type SnapshotPlace, type SnapshotRecord, type SnapshotStore } from '../../storage/snapshot-store/snapshot-store.js';

/** Archives do not change, so what is known of one holds. */
const KNOWN_MAX = 10_000;
const READ_AT_ONCE = 16;

interface FoundBase {
  readonly place: SnapshotPlace;
  readonly needed: ArchiveBase;
  readonly base: ArchiveBase | null;
}

/** Bases as files of this machine, nearest first. */
export interface HeldBases {
  readonly files: readonly BaseFile[];
  release(): Promise<void>;
}

export interface SnapshotBasesParts {
  readonly store: SnapshotStore;
  readonly archive: Pick<ArchivePort, 'hash' | 'manifestOf'>;
  readonly tempFolder: string;
}

export class SnapshotBases {
  readonly #known = new Map<string, ArchiveBase | null>();
  /** Bases that a snapshot is being made on; a name may be there several times. */
  readonly #inUse: string[] = [];

  constructor(private readonly parts: SnapshotBasesParts) {}

  /** The base of each snapshot of a list; null without one. */
  async of(place: SnapshotPlace, records: readonly SnapshotRecord[]): Promise<(ArchiveBase | null)[]> {
    const bases: (ArchiveBase | null)[] = [];
    for (let from = 0; from < records.length; from += READ_AT_ONCE)
      bases.push(...(await Promise.all(records.slice(from, from + READ_AT_ONCE).map((record) => this.#baseOf(place, record)))));
    return bases;
  }

  /** Errors: `conflict` if other snapshots of the place have this one as their base, or one is being made. */
  async requireUnneeded(place: SnapshotPlace, name: string): Promise<void> {
    if (this.#inUse.includes(keyOf(place, name)))
      throw new TroupeError('conflict', `a snapshot is being made with ${name} as its base: try again when it is done`);
    const records = await this.parts.store.list(place);
    const bases = await this.of(place, records);
    const needing = records.filter((_, at) => bases[at]?.name === name).map((record) => record.name);
    if (needing.length === 0) return;
    throw new TroupeError(
      'conflict',
      `snapshot ${name} is the base of ${needing.join(', ')}, which cannot be restored without it: delete these first, or add \`force=true\``,
    );
  }

  /**
   * Uses a snapshot as the base of a new one; it cannot be removed meanwhile. Errors: `notFound`; `ArchiveError` `base` if it cannot be
   * restored itself, or has too many bases.
   */
  async use<Value>(place: SnapshotPlace, name: string, signal: AbortSignal, run: (base: BaseFile) => Promise<Value>): Promise<Value> {
    const key = keyOf(place, name);
    this.#inUse.push(key);
    try {
      const { archive, store, tempFolder } = this.parts;
      const { checksum } = await store.describe(place, name);
      const { path, release } = await store.localFile(place, name, tempFolder, signal);
      try {
        const sha256 = checksum ?? (await archive.hash(path, { signal })).sha256;
        await chainOfBases({ name, sha256 }, (base) => this.#find([place], base));
        return await run({ name, sha256, file: path });
      } finally {
        await release();
      }
    } finally {
      this.#inUse.splice(this.#inUse.indexOf(key), 1);
    }
  }

  /**
   * The bases that an archive needs, from the list that it was in, or from `place`. Errors: `ArchiveError` `base` for one that is not there, or is
   * another one; of its content only the checksum that the store has for it is looked at.
   */
  async hold(file: string, place: SnapshotPlace, signal: AbortSignal): Promise<HeldBases> {
    const manifest = await this.#manifestOf(file, signal);
    const places = [...placesOf(manifest), place];
    const chain = await chainOfBases(manifest?.base ?? null, (base) => this.#find(places, base));
    const { store, tempFolder } = this.parts;
    const files: BaseFile[] = [];
    const releases: (() => Promise<void>)[] = [];
    const release = async () => {
      for (const one of releases) await one();
    };
    try {
      for (const { needed, place: from } of chain) {
        const local = await store.localFile(from, needed.name, tempFolder, signal);
        releases.push(() => local.release());
        files.push({ ...needed, file: local.path });
      }
      return { files, release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** Null for what is no archive: whoever unpacks it says why. */
  async #manifestOf(file: string, signal: AbortSignal): Promise<ArchiveManifest | null> {
    try {
      return await this.parts.archive.manifestOf(file, { signal });
    } catch (error) {
      if (error instanceof ArchiveError) return null;
      throw error;
    }
  }

  async #find(places: readonly SnapshotPlace[], base: ArchiveBase): Promise<FoundBase | null> {
    let other: string | null = null;
    for (const place of places) {
      const record = await unlessMissing(this.parts.store.describe(place, base.name));
      if (record === null) continue;
      if (record.checksum === null || record.checksum === base.sha256)
        return { place, needed: base, base: await this.#baseOf(place, record) };
      other = record.checksum;
    }
    if (other !== null) throw otherBase(base, other);
    return null;
  }

  async #baseOf(place: SnapshotPlace, { checksum, name, size }: SnapshotRecord): Promise<ArchiveBase | null> {
    const key = JSON.stringify([keyOf(place, name), checksum, size]);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const base = size === 0 ? null : baseAtStart(await this.#start(place, name, size));
    // Without a checksum another file may come in its place.
    if (checksum === null) return base;
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(key, base);
    return base;
  }

  async #start(place: SnapshotPlace, name: string, size: number): Promise<Buffer> {
    const end = Math.min(size, BASE_START_BYTES) - 1;
    const opened = await unlessMissing(this.parts.store.open(place, name, { start: 0, end }));
    const parts: Buffer[] = [];
    if (opened !== null) for await (const part of opened.stream) parts.push(part as Buffer);
    return Buffer.concat(parts);
  }
}

function placesOf(manifest: ArchiveManifest | null): SnapshotPlace[] {
  const [archived] = manifest?.collections ?? [];
  if (manifest === null || archived === undefined || manifest.kind === 'full') return [];
  if (manifest.kind === 'collection') return [{ kind: 'collection', collection: archived.name }];
  return archived.shards.map(({ id }) => ({ kind: 'shard', collection: archived.name, shardId: id }));
}

function keyOf(place: SnapshotPlace, name: string): string {
  return [...placeFolders(place), name].join('/');
}

async function unlessMissing<Value>(asked: Promise<Value>): Promise<Value | null> {
  try {
    return await asked;
  } catch (error) {
    if (errorFacts(error).code === 'notFound') return null;
    throw error;
  }
}

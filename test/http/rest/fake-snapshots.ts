/** Snapshots of a node that only pretends: archives are bytes in memory or made up, uploads are files of a real folder. */

import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import {
  type ListedSnapshot,
  NO_SNAPSHOT_FIGURES,
  type RestoreOptions,
  type RestoreTarget,
  type SnapshotApi,
  type SnapshotFigures,
  type UploadFile,
} from '../../../actors/snapshots/snapshot-api.js';
import type { ShardReach } from '../../../actors/snapshots/until.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { ArchiveRange, OpenArchive, SnapshotPlace, SnapshotRecord } from '../../../storage/snapshot-store/snapshot-store.js';

export interface Restored {
  readonly target: RestoreTarget;
  readonly options: RestoreOptions;
  /** The first bytes of an upload, or the location that was named. */
  readonly from: string;
  /** Of an upload. */
  readonly bytes: number;
}

interface Kept {
  readonly record: SnapshotRecord;
  readonly open: (range: ArchiveRange) => Readable;
}

const SHOWN_BYTES = 40;

export class FakeSnapshots implements SnapshotApi {
  readonly restored: Restored[] = [];
  /** Names that were looked for. */
  readonly named: string[] = [];
  /** Streams that were given out. */
  readonly opened: Readable[] = [];
  /** How much there is on the disk for uploads. */
  roomBytes = Number.POSITIVE_INFINITY;
  /** Bytes of uploads that room was asked for. */
  askedBytes = 0;
  /** Told of each collection. */
  shown: SnapshotFigures = NO_SNAPSHOT_FIGURES;
  /** Awaited by `create`, `remove` and restores. */
  before: () => Promise<void> = () => Promise.resolve();
  /** What is made is told by the same name each time, and is gone at once. */
  isForgetful = false;
  readonly #kept = new Map<string, Map<string, Kept>>();
  readonly #folder = mkdtempSync(join(tmpdir(), 'troupe-uploads-'));
  #made = 0;

  figures(): SnapshotFigures {
    return this.shown;
  }

  /** exists: of collections. Each has the shards 0 and 1. */
  constructor(private readonly exists: (collection: string) => boolean) {}

  /** Puts an archive of these bytes into a list. */
  keep(place: SnapshotPlace, name: string, bytes: Buffer): SnapshotRecord {
    const checksum = createHash('sha256').update(bytes).digest('hex');
    const open = ({ end, start }: ArchiveRange) => Readable.from([bytes.subarray(start, end + 1)]);
    return this.keepMade(place, name, { size: bytes.length, checksum }, open);
  }

  keepMade(
    place: SnapshotPlace,
    name: string,
    { checksum, size }: { readonly size: number; readonly checksum: string | null },
    open: (range: ArchiveRange) => Readable,
  ): SnapshotRecord {
    const record = { name, creationTime: '2026-11-21T01:04:22', size, checksum };
    this.#list(place).set(name, { record, open });
    return record;
  }

  /** Names of files of uploads that are there. */
  uploads(): string[] {
    return readdirSync(this.#folder);
  }

  uploadedBytes(): number {
    return this.uploads().reduce((sum, name) => sum + statSync(join(this.#folder, name)).size, 0);
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  check(place: SnapshotPlace): void {
    if (place.kind === 'full') return;
    if (!this.exists(place.collection)) throw new TroupeError('notFound', `Collection \`${place.collection}\` doesn't exist!`);
    if (place.kind === 'shard' && place.shardId > 1) throw new TroupeError('notFound', `shard ${place.shardId} not found`);
  }

  async list(place: SnapshotPlace): Promise<ListedSnapshot[]> {
    return [...this.#list(place).values()].map(({ record }) => ({ ...record, base: null }));
  }

  async create(place: SnapshotPlace, base: string | null = null): Promise<ListedSnapshot> {
    await this.before();
    if (this.isForgetful) return { name: 'made.snapshot', creationTime: '2026-11-21T01:04:22', size: 9, checksum: null, base };
    this.#made++;
    return { ...this.keep(place, `made-${this.#made}.snapshot`, Buffer.from(`archive ${this.#made}`)), base };
  }

  async remove(place: SnapshotPlace, name: string): Promise<void> {
    await this.before();
    this.#find(place, name);
    this.#list(place).delete(name);
  }

  async describe(place: SnapshotPlace, name: string): Promise<SnapshotRecord> {
    return this.#find(place, name).record;
  }

  async open(place: SnapshotPlace, name: string, range: ArchiveRange | null): Promise<OpenArchive> {
    const { open, record } = this.#find(place, name);
    const stream = open(range ?? { start: 0, end: record.size - 1 });
    this.opened.push(stream);
    return { size: record.size, stream };
  }

  async stream(collection: string, shardId: number, signal: AbortSignal): Promise<Readable> {
    const stream = Readable.from([Buffer.from(`shard ${shardId} `), Buffer.from(`of ${collection}`)], { signal });
    this.opened.push(stream);
    return stream;
  }

  async upload(): Promise<UploadFile> {
    this.#made++;
    const path = join(this.#folder, `upload-${this.#made}`);
    return {
      path,
      requireRoom: (bytes) => {
        this.askedBytes += bytes;
        if (bytes > this.roomBytes) throw new TroupeError('outOfDisk', 'there is no room', { outcome: 'none' });
      },
      discard: () => rm(path, { force: true }),
    };
  }

  async restoreUploaded(target: RestoreTarget, file: UploadFile, options: RestoreOptions): Promise<readonly ShardReach[]> {
    await this.before();
    const bytes = statSync(file.path).size;
    const from = bytes > 1 << 20 ? '' : readFileSync(file.path).subarray(0, SHOWN_BYTES).toString('latin1');
    await file.discard();
    if (from.startsWith('garbage')) throw new TroupeError('wrongInput', 'this is no archive');
    this.restored.push({ target, options, from, bytes });
    return [];
  }

  async recover(
    target: RestoreTarget,
    location: string,
    options: RestoreOptions & { readonly apiKey: string | null },
  ): Promise<readonly ShardReach[]> {
    await this.before();
    if (location.includes('nope')) throw new TroupeError('wrongInput', `nothing is at ${location}`);
    this.restored.push({ target, options, from: location, bytes: 0 });
    return [];
  }

  #list(place: SnapshotPlace): Map<string, Kept> {
    const key = JSON.stringify(place);
    const list = this.#kept.get(key) ?? new Map<string, Kept>();
    this.#kept.set(key, list);
    return list;
  }

  #find(place: SnapshotPlace, name: string): Kept {
    this.named.push(name);
    const kept = this.#list(place).get(name);
    if (kept === undefined) throw new TroupeError('notFound', `Snapshot ${name} not found`);
    return kept;
  }
}

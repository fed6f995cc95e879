/** What the servers and the start ask of a node about snapshots. */

import type { Readable } from 'node:stream';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { ArchiveRange, OpenArchive, SnapshotPlace, SnapshotRecord } from '../../storage/snapshot-store/snapshot-store.js';
import type { ShardReach } from './until.js';

/**
 * Which data a restored shard has where it has other replicas.
 *
 * - `replica`: that of its other Active replicas, where there are any; in a cluster a collection that the restore creates stays empty;
 * - `snapshot`: that of the snapshot; the other replicas are filled with it;
 * - `no_sync`: the replica on this node gets that of the snapshot; nothing is done about others.
 *
 * Source: the specification, «Restore priorities».
 */
export type SnapshotPriority = 'no_sync' | 'snapshot' | 'replica';

/** What is restored: a collection, or one of its shards. */
export interface RestoreTarget {
  /** A collection that does not exist is created; a shard must exist. */
  readonly collection: string;
  /** Null for the whole collection. */
  readonly shardId: ShardId | null;
}

export interface RestoreOptions {
  readonly priority: SnapshotPriority;
  /** SHA-256 that the archive must have, 64 hexadecimal digits; null: any. */
  readonly checksum: string | null;
  /** Null: the snapshot as it is. */
  readonly until: RestoreUntil | null;
}

/**
 * The operations that the log of the collection has after the snapshot belong to the restore, up to this time. The collection must be the one that the
 * snapshot was made of, and priority is `snapshot`.
 */
export interface RestoreUntil {
  /** A date in milliseconds; what was acknowledged then belongs to it. */
  readonly timeMs: number;
  /** Only tells what a restore would do. */
  readonly dryRun: boolean;
}

export interface ListedSnapshot extends SnapshotRecord {
  /** The snapshot of the same place that it cannot be restored without; null: it has all of its files. */
  readonly base: string | null;
}

/** A file that an upload is written to. It is removed with `discard`, or taken by `restoreUploaded`. */
export interface UploadFile {
  readonly path: string;
  /** Refuses bytes that the disk has no room for. Errors: `outOfDisk`. */
  requireRoom(bytes: number): void;
  discard(): Promise<void>;
}

/** What has become of snapshots of a collection since the start of the process. */
export interface SnapshotFigures {
  readonly created: number;
  /** Snapshots that are being made, or wait for their turn. */
  readonly creating: number;
  readonly restoring: number;
}

export const NO_SNAPSHOT_FIGURES: SnapshotFigures = { created: 0, creating: 0, restoring: 0 };

/** Aliases may stand for collections. Errors of all calls: `notFound` for the collection, the shard and the snapshot; `storage`; `unavailable`. */
export interface SnapshotApi {
  /** Of a collection by its own name. */
  figures(collection: string): SnapshotFigures;
  /** Throws `notFound` if the place names a collection or a shard that is not there. */
  check(place: SnapshotPlace): void;
  list(place: SnapshotPlace): Promise<readonly ListedSnapshot[]>;
  /**
   * Resolves when the archive is stored whole. base: the name of a snapshot of the same place, whose files the new one leaves out where they are the
   * same; null: it has all. Errors: `wrongInput` for a base of the whole storage, or one that cannot be restored itself.
   */
  create(place: SnapshotPlace, base?: string | null): Promise<ListedSnapshot>;
  /** force: also if others need it as their base. Errors: `conflict` if they do, and it is not forced. */
  remove(place: SnapshotPlace, name: string, force?: boolean): Promise<void>;
  describe(place: SnapshotPlace, name: string): Promise<SnapshotRecord>;
  /** The bytes of a stored archive, or a range of them within its size; null: all. */
  open(place: SnapshotPlace, name: string, range: ArchiveRange | null): Promise<OpenArchive>;
  /** An archive of one shard that is stored nowhere, made while it is read. */
  stream(collection: string, shardId: ShardId, signal: AbortSignal): Promise<Readable>;
  /** A file for an upload, below `storage.temp_path`. */
  upload(): Promise<UploadFile>;
  /**
   * Restores from an uploaded file, which is removed in every case. Result: how far each shard was brought, of a restore to a point in time. Errors:
   * `wrongInput` for an archive that cannot be restored, with the reason.
   */
  restoreUploaded(target: RestoreTarget, file: UploadFile, options: RestoreOptions): Promise<readonly ShardReach[]>;
  /**
   * Restores from a place that the request names: an HTTP(S) URL, a `file://` URI below the snapshots folder or, for a shard, the name of a
   * snapshot of it. apiKey: sent to the URL as `api-key`; null: none. Result and errors: as `restoreUploaded`; `forbidden`.
   */
  recover(
    target: RestoreTarget,
    location: string,
    options: RestoreOptions & { readonly apiKey: string | null },
  ): Promise<readonly ShardReach[]>;
}

/**
 * Segments that have left the set: their files go when no reader has a set with them any more, and their records in LMDB some at a time after
 * that (the manifest's `dropped`).
 */

import { rmSync } from 'node:fs';
import type { AppendFolder } from '../disk/append-file.js';
import type { Environment } from '../disk/lmdb.js';
import { afterPrefix } from '../disk/lmdb-tables.js';
import type { FilePart } from '../memory/system-calls.js';
import { pagesOf, type SegmentHandle } from '../segment/handle.js';
import { closeSegmentFiles } from '../segment/payload-file.js';
import { MANIFEST_KEY, segmentPrefix } from '../wal/records.js';
import { encodeManifest, type Manifest } from './manifest.js';

/** Most records of a dropped segment that are removed in one transaction. */
const PURGE_RECORDS = 4096;
const PURGED_DATABASES = ['rows', 'ids', 'payload', 'index', 'deleted'] as const;

export interface RetiredSegmentsHost {
  readonly environment: Environment;
  readonly rowFiles: AppendFolder;
  /** The manifest as it is committed. */
  manifest: Manifest;
}

interface RetiredSegment {
  /** It may be removed when all readers have dropped the sets before this generation. */
  readonly generation: number;
  readonly handle: SegmentHandle;
}

export class RetiredSegments {
  private retiring: RetiredSegment[] = [];
  /** Segments whose records can be removed. */
  private readonly purging: number[];
  /** All readers have dropped the sets before this generation. */
  private generation = 0;
  private empty: ((part: FilePart) => void) | null = null;

  constructor(private readonly host: RetiredSegmentsHost) {
    this.purging = [...host.manifest.dropped];
  }

  /** These are not in the set of this generation any more. */
  add(generation: number, handles: readonly SegmentHandle[]): void {
    this.retiring.push(...handles.map((handle) => ({ generation, handle })));
  }

  /** All readers have dropped the sets before `generation`. empty: see `memoryEmptier`. */
  seen(generation: number, empty: ((part: FilePart) => void) | null): void {
    this.generation = generation;
    this.empty = empty;
  }

  /** Removes the files of segments that only dropped sets had, and empties their memories. */
  remove(): void {
    const kept: RetiredSegment[] = [];
    for (const retired of this.retiring) {
      const { handle } = retired;
      if (retired.generation > this.generation) {
        kept.push(retired);
        continue;
      }
      if (handle.kind === 'sealed') removeSealed(handle);
      else this.host.rowFiles.remove(handle.id);
      const pages = pagesOf(handle);
      if (pages !== null) this.empty?.(pages);
      this.purging.push(handle.id);
    }
    this.retiring = kept;
  }

  /** Removes some records of removed segments, in one transaction. Returns whether there are more; null: there were none. Errors: `storage`. */
  purge(): boolean | null {
    const segment = this.purging[0];
    if (segment === undefined) return null;
    const { environment, manifest } = this.host;
    const prefix = segmentPrefix(segment);
    const without: Manifest = { ...manifest, dropped: manifest.dropped.filter((id) => id !== segment) };
    const isFinished = environment.write(() => {
      for (const database of PURGED_DATABASES)
        if (environment.removeRange(database, prefix, afterPrefix(prefix), PURGE_RECORDS) === PURGE_RECORDS) return false;
      environment.put('meta', MANIFEST_KEY, encodeManifest(without));
      return true;
    });
    if (isFinished) {
      this.purging.shift();
      this.host.manifest = without;
    }
    return this.purging.length > 0;
  }

  close(): void {
    for (const { handle } of this.retiring) if (handle.kind === 'sealed') closeSegmentFiles(handle);
  }
}

/** Removes the folder of a sealed segment. */
export function removeSealed(handle: SegmentHandle): void {
  closeSegmentFiles(handle);
  if (handle.folder !== null) rmSync(handle.folder, { recursive: true, force: true });
}

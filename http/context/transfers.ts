/** Requests whose answer or body is an archive: it passes as a stream, in whatever size. */

import type { Readable } from 'node:stream';
import type { UploadFile } from '../../actors/snapshots/snapshot-api.js';
import type { QueryParameters } from '../../protocols/rest/parameters.js';
import type { ArchiveRange } from '../../storage/snapshot-store/snapshot-store.js';
import type { DoorServices } from './services.js';

/** A file that a client may have, whole or in part. */
export interface OfferedFile {
  readonly name: string;
  /** In bytes; null: the file is made while it is read, and has no parts. */
  readonly size: number | null;
  /** SHA-256 of the file; null: not known. */
  readonly checksum: string | null;
  /** range: within the size; null: all. Whoever does not read the stream to its end destroys it. */
  open(range: ArchiveRange | null): Promise<Readable>;
}

/** Events that are sent as they come. Whoever does not read the stream to its end destroys it. */
export interface OfferedEvents {
  readonly kind: 'events';
  open(): Promise<Readable>;
}

export interface DownloadRequest<Names extends string> {
  /** What the path has in braces. */
  readonly path: Readonly<Record<Names, string>>;
  readonly query: QueryParameters;
  readonly lastEventId: string | undefined;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
}

/** Names: what the path has in braces. Throws errors of the catalogue. */
export type DownloadHandler<Names extends string = never> = (
  services: DoorServices,
  request: DownloadRequest<Names>,
) => OfferedFile | OfferedEvents | Promise<OfferedFile | OfferedEvents>;

/** An upload whose request is checked, before its body has come. */
export interface AwaitedUpload {
  /** False: the client gets its answer as soon as the file is here. */
  readonly wait: boolean;
  /** Takes the file; returns the `result` of the answer. */
  use(file: UploadFile): Promise<unknown>;
}

/** Errors: of the catalogue, for what is wrong with the path or the parameters. */
export type UploadHandler<Names extends string = never> = (
  services: DoorServices,
  request: { readonly path: Readonly<Record<Names, string>>; readonly query: QueryParameters },
) => AwaitedUpload;

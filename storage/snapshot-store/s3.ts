/**
 * Archives of snapshots in a bucket of an S3-compatible store, under the names that they would have in a local folder. The SHA-256 is the
 * object's metadata `sha256`. Archives go and come as streams, in chunks of some hundred kilobytes: neither memory nor a pause grows with them.
 *
 * The SDK is loaded with the first call. A node makes one at its start (`sweep`), where it has such a store.
 */

import { createReadStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { CompletedPart, ListMultipartUploadsCommandOutput, S3Client } from '@aws-sdk/client-s3';
import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import { isPassing, s3Refusal } from './s3-refusal.js';
import {
  type ArchiveRange,
  creationTimeOf,
  isSnapshotName,
  type LocalArchive,
  type OpenArchive,
  olderFirst,
  placeFolders,
  SNAPSHOT_SUFFIX,
  type SnapshotPlace,
  type SnapshotRecord,
  type SnapshotStore,
  snapshotNotFound,
} from './snapshot-store.js';
import { cancelledBy, diskRefusal, spoolToFile, throwIfEnded } from './spool.js';

/** `storage.snapshots_config.s3_config`. Without keys, the SDK looks for them where it usually does: in variables, files and the machine's role. */
export interface S3Settings {
  readonly bucket: string;
  readonly region: string | null;
  readonly accessKey: string | null;
  readonly secretKey: string | null;
  /** Of a store that is not Amazon's: its buckets are parts of the path. */
  readonly endpointUrl: string | null;
}

export interface S3StoreOptions {
  readonly settings: S3Settings;
  /** Bytes of the disk that a fetched archive must leave free. */
  readonly freeBytesMin: number;
  /** The system's date in milliseconds: uploads that others have begun count as given up when they are a day old. */
  readonly nowMs: () => number;
  /** Smaller ones than the store takes are for tests; default 16 MB. */
  readonly partBytes?: number;
}

type Sdk = typeof import('@aws-sdk/client-s3');

interface Connection {
  readonly sdk: Sdk;
  readonly client: S3Client;
}

const PART_BYTES = 16 << 20;
/** More parts no object can have. */
const PARTS_MAX = 10_000;
const PARTS_AT_ONCE = 3;
const READ_AT_ONCE = 16;
const CHUNK_BYTES = 256 << 10;
const TRIES = 4;
const FIRST_PAUSE_MS = 200;
const CONNECT_MS = 5_000;
const SILENCE_MS = 60_000;
const GIVEN_UP_MS = 24 * 3_600_000;
/** Status of calls that a store does not have. */
const CANNOT: ReadonlySet<number> = new Set([405, 501]);
const METADATA_KEY = 'sha256';
const SHA256 = /^[0-9a-f]{64}$/;

export class S3SnapshotStore implements SnapshotStore {
  private connection: Promise<Connection> | null = null;

  constructor(private readonly options: S3StoreOptions) {}

  async list(place: SnapshotPlace): Promise<SnapshotRecord[]> {
    const prefix = keyOf(place, '');
    const names: string[] = [];
    let after: string | undefined;
    do {
      const token = after;
      const page = await this.ask(({ client, sdk }) =>
        client.send(
          new sdk.ListObjectsV2Command({ Bucket: this.bucket, Prefix: prefix, Delimiter: '/', ...(token && { ContinuationToken: token }) }),
        ),
      );
      names.push(...(page.Contents ?? []).map(({ Key = '' }) => Key.slice(prefix.length)));
      after = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (after !== undefined);
    const records: SnapshotRecord[] = [];
    const wanted = names.filter(isSnapshotName);
    for (let from = 0; from < wanted.length; from += READ_AT_ONCE) {
      const found = await Promise.all(wanted.slice(from, from + READ_AT_ONCE).map((name) => this.find(place, name)));
      for (const record of found) if (record !== null) records.push(record);
    }
    return records.sort(olderFirst);
  }

  async describe(place: SnapshotPlace, name: string): Promise<SnapshotRecord> {
    const record = isSnapshotName(name) ? await this.find(place, name) : null;
    if (record === null) throw notFound(place, name);
    return record;
  }

  async put(place: SnapshotPlace, name: string, file: string, sha256: string, signal: AbortSignal): Promise<SnapshotRecord> {
    if (!isSnapshotName(name)) throw new TroupeError('internal', `${JSON.stringify(name)} is no name of a snapshot`, { outcome: 'none' });
    throwIfEnded(signal);
    const size = await sizeOf(file);
    if ((await this.find(place, name)) !== null) {
      throw new TroupeError('conflict', `there is a snapshot ${name} already; remove it, or give the new one another name`);
    }
    const partBytes = Math.max(this.options.partBytes ?? PART_BYTES, Math.ceil(size / PARTS_MAX));
    const key = keyOf(place, name);
    if (size <= partBytes) await this.putWhole(key, file, size, sha256, signal);
    else await this.putParts(key, file, size, partBytes, sha256, signal);
    const kept = await this.describe(place, name);
    if (kept.size !== size) {
      await this.remove(place, name);
      throw new TroupeError('unavailable', `the store has kept ${kept.size} of ${size} bytes of ${name}: try again`, { outcome: 'none' });
    }
    await rm(file, { force: true }).catch(() => undefined);
    return kept;
  }

  async open(place: SnapshotPlace, name: string, range: ArchiveRange | null): Promise<OpenArchive> {
    if (!isSnapshotName(name)) throw notFound(place, name);
    return this.get(place, name, range, new AbortController().signal);
  }

  async localFile(place: SnapshotPlace, name: string, tempFolder: string, signal: AbortSignal): Promise<LocalArchive> {
    const { size } = await this.describe(place, name);
    const path = join(tempFolder, `${crypto().randomUUID()}${SNAPSHOT_SUFFIX}`);
    await this.tryAgain(signal, async () => {
      const { stream } = await this.get(place, name, null, signal);
      await spoolToFile(stream, path, { expectedBytes: size, freeBytesMin: this.options.freeBytesMin, signal });
    });
    return { path, release: () => rm(path, { force: true }) };
  }

  async remove(place: SnapshotPlace, name: string): Promise<void> {
    await this.describe(place, name);
    await this.ask(({ client, sdk }) => client.send(new sdk.DeleteObjectCommand({ Bucket: this.bucket, Key: keyOf(place, name) })));
  }

  /** Gives up uploads of snapshots that were begun a day ago: other nodes may be at theirs. A store that cannot list uploads has 0. */
  async sweep(): Promise<number> {
    const givenUpMs = this.options.nowMs() - GIVEN_UP_MS;
    let removed = 0;
    for (let page = await this.uploads(null); page !== null; page = await this.uploads(page)) {
      for (const { Initiated, Key = '', UploadId } of page.Uploads ?? []) {
        const isOld = Initiated !== undefined && Initiated.getTime() < givenUpMs;
        if (!isOld || !isSnapshotName(Key.slice(Key.lastIndexOf('/') + 1))) continue;
        await this.giveUp(Key, UploadId);
        removed++;
      }
    }
    return removed;
  }

  /** Ends its connections. */
  async close(): Promise<void> {
    if (this.connection !== null) (await this.connection).client.destroy();
  }

  private get bucket(): string {
    return this.options.settings.bucket;
  }

  /** Null for what is not there. */
  private async find(place: SnapshotPlace, name: string): Promise<SnapshotRecord | null> {
    const { client, sdk } = await this.connected();
    try {
      const found = await client.send(new sdk.HeadObjectCommand({ Bucket: this.bucket, Key: keyOf(place, name) }));
      const checksum = found.Metadata?.[METADATA_KEY] ?? '';
      return {
        name,
        creationTime: creationTimeOf(found.LastModified?.getTime() ?? 0),
        size: found.ContentLength ?? 0,
        checksum: SHA256.test(checksum) ? checksum : null,
      };
    } catch (error) {
      // An answer to HEAD has no body, so it does not say whether the bucket is there.
      if (statusOf(error) === 404) return null;
      throw this.refusal(error);
    }
  }

  private async get(place: SnapshotPlace, name: string, range: ArchiveRange | null, signal: AbortSignal): Promise<OpenArchive> {
    const { client, sdk } = await this.connected();
    const part = range === null ? {} : { Range: `bytes=${range.start}-${range.end}` };
    try {
      const found = await client.send(new sdk.GetObjectCommand({ Bucket: this.bucket, Key: keyOf(place, name), ...part }), {
        abortSignal: signal,
      });
      const whole = Number(found.ContentRange?.split('/')[1] ?? found.ContentLength);
      return { size: whole, stream: found.Body as Readable };
    } catch (error) {
      if (signal.aborted) throw cancelledBy(signal);
      if (nameOf(error) === 'NoSuchKey') throw notFound(place, name);
      throw this.refusal(error);
    }
  }

  private async putWhole(key: string, file: string, size: number, sha256: string, signal: AbortSignal): Promise<void> {
    await this.tryAgain(signal, ({ client, sdk }) => {
      const input = { Bucket: this.bucket, Key: key, Metadata: { [METADATA_KEY]: sha256 }, ContentLength: size };
      return sending(partOf(file, 0, size), (Body) => client.send(new sdk.PutObjectCommand({ ...input, Body }), { abortSignal: signal }));
    });
  }

  /** The object is there when all parts are, and not before (Store-B1). What was sent of a failed one is given up. */
  private async putParts(key: string, file: string, size: number, partBytes: number, sha256: string, signal: AbortSignal): Promise<void> {
    const { UploadId } = await this.tryAgain(signal, ({ client, sdk }) =>
      client.send(new sdk.CreateMultipartUploadCommand({ Bucket: this.bucket, Key: key, Metadata: { [METADATA_KEY]: sha256 } }), {
        abortSignal: signal,
      }),
    );
    const upload = { Bucket: this.bucket, Key: key, UploadId };
    const count = Math.ceil(size / partBytes);
    const parts: CompletedPart[] = [];
    // One part's failure ends the others.
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    let next = 0;
    const sendSome = async () => {
      while (next < count) {
        const at = next++;
        const from = at * partBytes;
        const bytes = Math.min(partBytes, size - from);
        const { ETag } = await this.tryAgain(either, ({ client, sdk }) =>
          sending(partOf(file, from, bytes), (Body) =>
            client.send(new sdk.UploadPartCommand({ ...upload, PartNumber: at + 1, ContentLength: bytes, Body }), { abortSignal: either }),
          ),
        );
        parts[at] = { ETag, PartNumber: at + 1 };
      }
    };
    const senders = Array.from({ length: Math.min(PARTS_AT_ONCE, count) }, () =>
      sendSome().catch((error: unknown) => {
        if (!failed.signal.aborted) failed.abort(error);
        throw error;
      }),
    );
    try {
      await Promise.allSettled(senders);
      await Promise.all(senders).catch(() => {
        throw signal.aborted ? cancelledBy(signal) : failed.signal.reason;
      });
      await this.complete(upload, parts, signal);
    } catch (error) {
      await this.giveUp(key, UploadId).catch(() => undefined);
      throw error;
    }
  }

  private async complete(
    upload: { readonly Bucket: string; readonly Key: string; readonly UploadId: string | undefined },
    parts: CompletedPart[],
    signal: AbortSignal,
  ): Promise<void> {
    const { client, sdk } = await this.connected();
    throwIfEnded(signal);
    try {
      await client.send(new sdk.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts: parts } }));
    } catch (error) {
      // The answer to an earlier try was lost; whether the object is there is looked at next.
      if (nameOf(error) !== 'NoSuchUpload') throw this.refusal(error);
    }
  }

  /** The page of unfinished uploads behind another one; null: there is none. */
  private async uploads(before: ListMultipartUploadsCommandOutput | null): Promise<ListMultipartUploadsCommandOutput | null> {
    if (before !== null && before.IsTruncated !== true) return null;
    const { client, sdk } = await this.connected();
    const markers = before === null ? {} : { KeyMarker: before.NextKeyMarker, UploadIdMarker: before.NextUploadIdMarker };
    try {
      return await client.send(new sdk.ListMultipartUploadsCommand({ Bucket: this.bucket, ...markers }));
    } catch (error) {
      if (CANNOT.has(statusOf(error) ?? 0)) return null;
      throw this.refusal(error);
    }
  }

  private async giveUp(key: string, uploadId: string | undefined): Promise<void> {
    await this.ask(({ client, sdk }) =>
      client.send(new sdk.AbortMultipartUploadCommand({ Bucket: this.bucket, Key: key, UploadId: uploadId })),
    );
  }

  private async ask<T>(call: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.connected();
    try {
      return await call(connection);
    } catch (error) {
      throw this.refusal(error);
    }
  }

  /** As `ask`, again where that may help: the SDK does not send streams twice. */
  private async tryAgain<T>(signal: AbortSignal, call: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.connected();
    for (let tried = 1; ; tried++) {
      throwIfEnded(signal);
      try {
        return await call(connection);
      } catch (error) {
        if (signal.aborted) throw cancelledBy(signal);
        if (tried === TRIES || !isPassing(error)) throw this.refusal(error);
        // An ended signal is noticed above.
        await pause(FIRST_PAUSE_MS * 2 ** (tried - 1), undefined, { signal }).catch(() => undefined);
      }
    }
  }

  private refusal(error: unknown): unknown {
    return s3Refusal(error, this.options.settings);
  }

  private connected(): Promise<Connection> {
    this.connection ??= connect(this.options.settings);
    return this.connection;
  }
}

async function connect({ accessKey, endpointUrl, region, secretKey }: S3Settings): Promise<Connection> {
  const sdk = await import('@aws-sdk/client-s3');
  const client = new sdk.S3Client({
    maxAttempts: TRIES,
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
    ...(region === null ? {} : { region }),
    ...(accessKey === null || secretKey === null ? {} : { credentials: { accessKeyId: accessKey, secretAccessKey: secretKey } }),
    // Other stores than Amazon's know fewer of its checksums, and no names of buckets before their own.
    ...(endpointUrl === null
      ? {}
      : {
          endpoint: endpointUrl,
          region: region ?? 'us-east-1',
          forcePathStyle: true,
          requestChecksumCalculation: 'WHEN_REQUIRED' as const,
          responseChecksumValidation: 'WHEN_REQUIRED' as const,
        }),
  });
  return { sdk, client };
}

function keyOf(place: SnapshotPlace, name: string): string {
  return [...placeFolders(place), name].join('/');
}

function notFound(place: SnapshotPlace, name: string): TroupeError {
  return snapshotNotFound(place, name, isSnapshotName(name) ? keyOf(place, name) : name);
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    throw diskRefusal(error, file);
  }
}

function partOf(file: string, from: number, bytes: number): Readable {
  return createReadStream(file, { start: from, end: Math.max(from, from + bytes - 1), highWaterMark: CHUNK_BYTES });
}

/** Sends a stream, which is closed whatever becomes of the call. */
async function sending<T>(stream: Readable, send: (stream: Readable) => Promise<T>): Promise<T> {
  try {
    return await send(stream);
  } finally {
    stream.destroy();
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
}

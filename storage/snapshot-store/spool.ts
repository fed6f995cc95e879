/** Bytes that come as a stream, written to a new file for as long as the disk has room; and what is said when a disk refuses. */

import { constants } from 'node:fs';
import { type FileHandle, open, rm, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { TroupeError } from '../../protocols/errors.js';
import { BatchWriter } from '../disk/batch-writer.js';

export interface SpoolOptions {
  /** Bytes of the disk that must stay free. */
  readonly freeBytesMin: number;
  /** Bytes that will come; null: not known. */
  readonly expectedBytes: number | null;
  readonly signal: AbortSignal;
}

/** After so many bytes the disk is asked for its room. */
const LOOK_EVERY_BYTES = 32 << 20;
const RETRY_AFTER_MS = 10_000;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Writes all of `source` to `file`, which must not exist, and waits until it is on disk. Result: the number of bytes. On any error the file is gone,
 * and the source destroyed. Errors: `outOfDisk` before anything that does not fit is written; `unavailable` when fewer or more bytes come than
 * expected, or the signal ends it; the source's own.
 */
export async function spoolToFile(source: Readable, file: string, options: SpoolOptions): Promise<number> {
  const { expectedBytes, freeBytesMin, signal } = options;
  let handle: FileHandle | null = null;
  let writer: BatchWriter | null = null;
  let isOurs = false;
  try {
    throwIfEnded(signal);
    addAbortSignal(signal, source);
    handle = await onDisk(file, open(file, NEW_FILE, 0o600));
    isOurs = true;
    writer = new BatchWriter(handle);
    await requireRoom(file, expectedBytes ?? 0, freeBytesMin);
    let bytes = 0;
    let lookAt = LOOK_EVERY_BYTES;
    for await (const chunk of source as AsyncIterable<Buffer>) {
      if (bytes + chunk.length >= lookAt) {
        const coming = expectedBytes === null ? chunk.length : Math.max(0, expectedBytes - bytes);
        await requireRoom(file, coming + BatchWriter.heldBytesMax, freeBytesMin);
        lookAt = bytes + LOOK_EVERY_BYTES;
      }
      bytes += chunk.length;
      if (expectedBytes !== null && bytes > expectedBytes) throw wrongLength(bytes, expectedBytes);
      const behind = writer.add(chunk);
      if (behind !== null) await onDisk(file, behind);
    }
    await onDisk(file, writer.end());
    if (expectedBytes !== null && bytes !== expectedBytes) throw wrongLength(bytes, expectedBytes);
    await onDisk(file, handle.sync());
    return bytes;
  } catch (error) {
    source.destroy();
    await writer?.settled();
    if (isOurs) await rm(file, { force: true }).catch(() => undefined);
    throw signal.aborted ? cancelledBy(signal) : error;
  } finally {
    await handle?.close();
  }
}

/** Errors: `outOfDisk` when so many bytes would leave less than `freeBytesMin` of the disk that `file` is to be on. */
async function requireRoom(file: string, bytes: number, freeBytesMin: number): Promise<void> {
  const { bavail, blocks, bsize } = await onDisk(file, statfs(dirname(file)));
  // Some file systems have no figures, and say 0 blocks.
  const freeBytes = blocks === 0 ? Number.MAX_SAFE_INTEGER : bavail * bsize;
  if (freeBytes - bytes < freeBytesMin) throw diskFull(file, ` (${freeBytes} bytes are free, ${bytes + freeBytesMin} are needed)`);
}

/** What the disk refused, as an error of the catalogue; errors of the catalogue, and what is none of the system's, as they are. */
export function diskRefusal(error: unknown, file: string): unknown {
  if (error instanceof TroupeError) return error;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) return error;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') return diskFull(file, ` (${code})`, error);
  const advice = code === 'EACCES' || code === 'EPERM' || code === 'EROFS' ? '; give this process the right to write there' : '';
  return new TroupeError('storage', `${file}: ${syscall} failed (${code})${advice}`, { cause: error, outcome: 'none' });
}

/** The error of a call that its signal has ended: the signal's own reason where that is of the catalogue. */
export function cancelledBy(signal: AbortSignal): TroupeError {
  if (signal.reason instanceof TroupeError) return signal.reason;
  return new TroupeError('unavailable', 'the operation was cancelled before its end; nothing of it was kept', { outcome: 'none' });
}

export function throwIfEnded(signal: AbortSignal): void {
  if (signal.aborted) throw cancelledBy(signal);
}

function diskFull(file: string, figures: string, cause?: unknown): TroupeError {
  const detail = `no room for ${file}${figures}: remove snapshots or other files, or give the disk more room; nothing was kept`;
  return new TroupeError('outOfDisk', detail, { cause, outcome: 'none', retryAfterMs: RETRY_AFTER_MS });
}

function wrongLength(bytes: number, expectedBytes: number): TroupeError {
  const detail = `${bytes} bytes have come where ${expectedBytes} belong: try again`;
  return new TroupeError('unavailable', detail, { outcome: 'none' });
}

async function onDisk<T>(file: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw diskRefusal(error, file);
  }
}

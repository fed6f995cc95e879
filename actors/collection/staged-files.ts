/**
 * Files of `snapshot` transfers, in folders of `CollectionStore.staging`: on the target before they replace a replica's files, on the
 * source after they were copied.
 */

import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import { syncFolder } from '../../storage/disk/checked-file.js';

/** Access to staged files. Paths are relative to their folder and stay inside it. Errors: `storage`. */
export interface StagedFiles {
  /** `length` bytes from `offset` on. */
  read(folder: string, path: string, offset: number, length: number): Promise<Uint8Array>;
  /** Writes bytes at `offset`. Offset 0 replaces an existing file. */
  write(folder: string, path: string, offset: number, bytes: Uint8Array): Promise<void>;
  /**
   * Makes these files durable, once each exists with all its bytes. Result: a folder with them that later writes to `folder` do not reach.
   */
  settle(folder: string, files: readonly StagedFile[]): Promise<string>;
  remove(folder: string): Promise<void>;
}

export interface StagedFile {
  readonly path: string;
  readonly bytes: number;
}

/** Names of files that a checkpoint may have: nothing leads out of the folder. */
const CHECKPOINT_PATH = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[\w.-]+(?:\/[\w.-]+)*$/;
/** Below what a call to a peer may carry, and small enough that the main thread is not held up. */
const PART_BYTES = 2 * 2 ** 20;

export function isCheckpointPath(path: string): boolean {
  return CHECKPOINT_PATH.test(path);
}

/** A file in parts, for calls to a peer. An empty file is one part, too. */
export async function* partsOfFile(
  staged: StagedFiles,
  folder: string,
  { bytes, path }: StagedFile,
): AsyncGenerator<{ readonly offset: number; readonly bytes: Uint8Array }> {
  let offset = 0;
  do {
    const part = await staged.read(folder, path, offset, Math.min(PART_BYTES, bytes - offset));
    yield { offset, bytes: part };
    offset += part.length;
  } while (offset < bytes);
}

export const STAGED_ON_DISK: StagedFiles = {
  read: async (folder, path, offset, length) => {
    const handle = await open(join(folder, path), 'r');
    try {
      const part = new Uint8Array(length);
      const { bytesRead } = await handle.read(part, 0, length, offset);
      if (bytesRead < length) throw new TroupeError('storage', `${path} of the checkpoint is shorter than it was`);
      return part;
    } finally {
      await handle.close();
    }
  },
  write: async (folder, path, offset, bytes) => {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    // A part of an earlier try that is still being written must not reach the new file.
    if (offset === 0) await rm(file, { force: true });
    const handle = await open(file, offset === 0 ? 'w' : 'r+');
    try {
      let written = 0;
      while (written < bytes.length) {
        const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, offset + written);
        written += bytesWritten;
      }
    } catch (error) {
      throw new TroupeError('storage', `${path} cannot be written: ${String(error)}`, { cause: error });
    } finally {
      await handle.close();
    }
  },
  settle: async (staged, files) => {
    const folder = `${staged}-${crypto().randomUUID()}`;
    await rename(staged, folder).catch((error: unknown) => {
      throw new TroupeError('storage', `the files of the transfer are not there: ${String(error)}`, { cause: error });
    });
    try {
      await syncAll(folder, files);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
    return folder;
  },
  remove: (folder) => rm(folder, { recursive: true, force: true }),
};

async function syncAll(folder: string, files: readonly StagedFile[]): Promise<void> {
  for (const file of files) await syncFile(folder, file);
  const folders = new Set([folder]);
  for (const { path } of files) {
    for (let below = dirname(path); below !== '.'; below = dirname(below)) folders.add(join(folder, below));
  }
  for (const one of folders) await syncFolder(one);
}

async function syncFile(folder: string, { bytes, path }: StagedFile): Promise<void> {
  const file = join(folder, path);
  const found = await stat(file).catch(() => null);
  if (found?.size !== bytes) throw new TroupeError('storage', `${path} has arrived incomplete: ${found?.size ?? 'no'} of ${bytes} bytes`);
  const handle = await open(file, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

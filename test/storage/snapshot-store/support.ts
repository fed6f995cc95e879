/** Archives, folders and signals for tests of stores. */

import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import type { SnapshotPlace } from '../../../storage/snapshot-store/snapshot-store.js';
import { testSeed } from '../../seed.js';

export const FULL: SnapshotPlace = { kind: 'full' };
export const PICTURES: SnapshotPlace = { kind: 'collection', collection: 'My Pictures' };
export const SHARD: SnapshotPlace = { kind: 'shard', collection: 'My Pictures', shardId: 3 };

export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-snapshots-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A signal that nobody aborts. */
export function noEnd(): AbortSignal {
  return new AbortController().signal;
}

/** A finished archive in a folder: bytes that differ everywhere, and their SHA-256. */
export function archiveIn(folder: string, bytes: number, name = 'made.tmp'): { file: string; sha256: string; content: Buffer } {
  const content = bytesOf(bytes, testSeed());
  const file = join(folder, name);
  writeFileSync(file, content);
  return { file, sha256: sha256Of(content), content };
}

/** Made bytes: the same ones for the same seed. */
export function bytesOf(length: number, seed: number): Buffer {
  const content = Buffer.alloc(length);
  let state = seed | 1;
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    content[at] = state >>> 24;
  }
  return content;
}

export function sha256Of(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

export async function bytesIn(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function sha256OfFile(file: string): Promise<string> {
  return sha256Of(await readFile(file));
}

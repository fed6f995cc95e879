/** Archives for tests: folders with the files of shards, their manifest, and tar files made by hand. */

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { Header } from 'tar/header';
import type { JsonValue } from '../../../protocols/model/payload.js';
import { ARCHIVE_FORMAT, type ArchiveManifest } from '../../../storage/archive/manifest.js';
import { checksumText, encodeChecksums, packToFile } from '../../../storage/archive/pack.js';
import { encodeChecked } from '../../../storage/disk/checked-file.js';
import { checksum64 } from '../../../storage/disk/checksum.js';

export const ROOM = { bytesMax: 2 ** 40, freeBytesMin: 0 };

/** A folder that is removed after the test. */
export function folderFor(t: TestContext): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'archive-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export type ShardContent = Readonly<Record<string, Uint8Array>>;

/** Names of each kind that a replica has, with lengths around those of blocks and chunks, and one name that no header of a tar can hold. */
export const CONTENT: ShardContent = {
  'lmdb/data.mdb': pattern(3 * 2 ** 20 + 17, 1),
  'rows/7': pattern(512, 2),
  'segments/3/vectors.0': pattern(2 ** 20, 3),
  'segments/3/segment': pattern(1, 4),
  [`segments/3/index.${'%c3'.repeat(40)}~0123456789abcdef`]: pattern(513, 5),
  'segments/3/empty': new Uint8Array(0),
  'format.json': pattern(100, 6),
};

export const SMALL: ShardContent = { 'lmdb/data.mdb': pattern(700, 1), 'rows/7': pattern(512, 2), 'format.json': pattern(90, 3) };

/** Bytes that differ from place to place. */
export function pattern(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0, state = seed * 2_654_435_761; at < length; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[at] = state >>> 16;
  }
  return bytes;
}

/** Writes the files of a shard. */
export function writeShard(folder: string, content: ShardContent): void {
  for (const [name, bytes] of Object.entries(content)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), bytes);
  }
}

/** All files below a folder by their paths, with what is in them; empty where there is no folder. */
export function contentOf(folder: string): Record<string, Buffer> {
  if (!fs.existsSync(folder)) return {};
  const names = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => fs.lstatSync(path.join(folder, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, fs.readFileSync(path.join(folder, name))]));
}

/** Of one collection with one shard. */
export function manifestOf(content: ShardContent, change: Partial<ArchiveManifest> = {}): ArchiveManifest {
  const files = Object.entries(content).map(([name, { length }]) => ({ path: name, bytes: length }));
  return {
    kind: 'collection',
    version: '0.1.0',
    createdAt: '2026-11-21T01:04:22.123Z',
    peer: 5,
    aliases: [],
    collections: [
      {
        name: 'one',
        description: JSON.parse('{"config":{"params":{}},"__proto__":{"isOdd":true}}') as JsonValue,
        shards: [{ id: 0, key: null, points: 3, at: { peer: 0, term: 0, index: 9 }, files }],
      },
    ],
    ...change,
  };
}

/** Packs the content of one shard. Result: the archive's path. */
export async function packed(folder: string, content: ShardContent, name = 'made.snapshot'): Promise<string> {
  const shard = path.join(folder, `shard-of-${name}`);
  const file = path.join(folder, name);
  writeShard(shard, content);
  await packToFile({ manifest: manifestOf(content), folderOf: () => shard }, file, 0);
  return file;
}

// ------------------------------------------------------------------ archives by hand

export interface HandMember {
  readonly name: string;
  readonly data: Uint8Array;
  /** Typeflag; default: a plain file. */
  readonly type?: string;
  /** What the header says, where it lies. */
  readonly size?: number;
  readonly link?: string;
  /** Changes the block before its checksum is counted. */
  readonly change?: (block: Buffer) => void;
  /** Changes the block afterwards. */
  readonly spoil?: (block: Buffer) => void;
  /** Bytes behind the data; default zeros up to the next block. */
  readonly padding?: Uint8Array;
}

export function blockOf({ change, data, link, name, size, spoil, type }: HandMember): Buffer {
  const block = Buffer.alloc(512);
  // Longer names are put in as far as they fit: whoever tests them says so.
  const options = { path: name.slice(0, 99), mode: 0o644, uid: 0, gid: 0, size: size ?? data.length, mtime: new Date(0) };
  new Header({ ...options, type: 'File', linkpath: link ?? '' }).encode(block, 0);
  block.write(type ?? '0', 156, 1, 'latin1');
  change?.(block);
  if (type !== undefined || change !== undefined || link !== undefined) recount(block);
  spoil?.(block);
  return block;
}

/** Puts in the checksum of a header. */
export function recount(block: Buffer): void {
  block.fill(0x20, 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 8, 'latin1');
}

export function bytesOf(member: HandMember): Buffer {
  const padding = member.padding ?? Buffer.alloc((512 - (member.data.length % 512)) % 512);
  return Buffer.concat([blockOf(member), member.data, padding]);
}

/** The members of a sound archive of one shard. */
export function membersOf(content: ShardContent): HandMember[] {
  return [
    manifestMember(manifestOf(content)),
    ...Object.entries(content).map(([name, data]) => ({ name: `collections/0/shards/0/${name}`, data })),
    checksumsMember(Object.values(content)),
  ];
}

/** manifest: of any shape. */
export function manifestMember(manifest: object): HandMember {
  return { name: 'manifest.json', data: encodeChecked('manifest', { format: ARCHIVE_FORMAT, ...manifest }) };
}

export function checksumsMember(files: readonly Uint8Array[]): HandMember {
  return { name: 'checksums.json', data: encodeChecksums(files.map((data) => checksumText(checksum64(data)))) };
}

export const END = Buffer.alloc(1024);

export function archiveOf(members: readonly HandMember[], end: Uint8Array = END): Buffer {
  return Buffer.concat([...members.map(bytesOf), end]);
}

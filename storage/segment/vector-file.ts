/**
 * What of a sealed segment is not in memory, originals and field indexes, read from its files by position. The whole file was
 * verified when the segment was loaded, or each block of it is before it is used (`block-sums.ts`); a file that ends early since then is reported by its name.
 */

import fs from 'node:fs';
import path from 'node:path';
import { DamagedFile, openPlainFile, readFully } from '../disk/file.js';
import { countRead, spend } from '../disk/meter.js';
import { type AskAhead, askAhead } from '../memory/system-calls.js';
import { isVerified, verifyBlocks } from './block-sums.js';
import type { SegmentHandle } from './handle.js';
import type { OriginalsFile, VectorLayout } from './layout.js';

/** The file of the `n`th vector of a segment. */
export function vectorFile(n: number): string {
  return `vectors.${n}`;
}

/**
 * Fills `target` (which may lie in shared memory) with whole rows from `row` on.
 * vector: one of the segment's, with its originals in a file. Errors: `storage`, with the file's path.
 */
export function readRows(handle: SegmentHandle, vector: VectorLayout, row: number, target: Uint8Array): void {
  const { file, stride } = vector;
  if (file === null) throw new Error(`the originals of '${vector.name}' are in memory`);
  readVectors(handle, file, row * stride, target);
}

/** position: in bytes from row 0. */
function readVectors(handle: SegmentHandle, file: OriginalsFile, position: number, target: Uint8Array): void {
  const { name, start, sums } = file;
  const read = (from: number, into: Uint8Array): void => readPart(handle, name, null, start + from, into);
  if (sums !== undefined && !isVerified(sums)) verifyBlocks(sums, position, target.length, path.join(handle.folder as string, name), read);
  read(position, target);
  spend('vector_io_read', target.length);
  countRead();
}

/** A part of a file of originals or codes, in bytes from its row 0. */
interface WantedPart {
  readonly position: number;
  readonly bytes: number;
}

/** A read that took longer has waited for the disk. */
const WAITED_MS = 0.06;

/**
 * Parts of a file that are read one after the other. Once one of them has waited for the disk, the system is asked for all that follow, where the process
 * can do that, so that the disk works on them at once: 30 reads of 24 kB took 4 to 8 ms instead of 11 to 38, and 0.4 to 0.8 of the CPU (a cloud's virtual disk, load 10).
 * Asking for what is in the system's cache takes 4 µs, twice what a small read takes, so it is left out until then.
 */
export class FileParts {
  private at = 0;
  private asked = false;

  /** parts: in the order in which they will be read. ask: null where the process cannot. nowMs: of any beginning. */
  constructor(
    private readonly handle: SegmentHandle,
    private readonly file: OriginalsFile,
    private readonly parts: readonly WantedPart[],
    private readonly ask: AskAhead | null = askAhead(),
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** Fills `target` (which may lie in shared memory), as long as the part, with the next one. Errors: `storage`, with the file's path. */
  readNext(target: Uint8Array): void {
    const { file, handle } = this;
    const { position } = this.parts[this.at++] as WantedPart;
    const startedMs = this.nowMs();
    readVectors(handle, file, position, target);
    if (this.asked || this.ask === null || this.nowMs() - startedMs < WAITED_MS) return;
    this.asked = true;
    const { descriptor } = openFile(handle, file.name, null);
    for (const part of this.parts.slice(this.at)) this.ask(descriptor, file.start + part.position, part.bytes);
  }
}

/**
 * Fills `target` with the bytes of a file from `position` on. inode: of the file that is meant, where another one may take its
 * place under its name. Errors: `storage`, with the file's path.
 */
export function readPart(handle: SegmentHandle, name: string, inode: number | null, position: number, target: Uint8Array): void {
  const open = openFile(handle, name, inode);
  readFully(open.descriptor, target, position, open.path);
}

/** Closes the files of vectors and field indexes that this thread has open of the segment. */
export function closeVectorFiles(handle: SegmentHandle): void {
  for (const { descriptor } of openFiles.get(handle.memory)?.values() ?? []) fs.closeSync(descriptor);
  openFiles.delete(handle.memory);
}

interface OpenFile {
  readonly path: string;
  readonly descriptor: number;
}

/** What this thread has open, by file name (and inode) within the segment; a segment is known by its memory, as handles of it come and go. */
const openFiles = new WeakMap<WebAssembly.Memory, Map<string, OpenFile>>();

function openFile({ folder, memory }: SegmentHandle, name: string, inode: number | null): OpenFile {
  let files = openFiles.get(memory);
  if (files === undefined) {
    files = new Map();
    openFiles.set(memory, files);
  }
  const key = inode === null ? name : `${name} ${inode}`;
  const known = files.get(key);
  if (known !== undefined) return known;
  const file = path.join(folder as string, name);
  const opened = { path: file, descriptor: openPlainFile(file) };
  if (inode !== null && fs.fstatSync(opened.descriptor).ino !== inode) {
    fs.closeSync(opened.descriptor);
    throw new DamagedFile(file, 'another file has taken its place');
  }
  files.set(key, opened);
  return opened;
}

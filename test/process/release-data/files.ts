/** A folder as one file: paths and contents, packed. Holes of sparse files pack to nothing. */

import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';

interface PackedFile {
  readonly path: string;
  /** Bytes; what follows the content is zeros. */
  readonly size: number;
  /** Base64, without the zeros at the end. */
  readonly content: string;
}

export function packFolder(folder: string): Buffer {
  const files: PackedFile[] = [];
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const bytes = readFileSync(path);
    let end = bytes.length;
    while (end > 0 && bytes[end - 1] === 0) end--;
    files.push({ path: relative(folder, path), size: bytes.length, content: bytes.toString('base64', 0, end) });
  }
  return gzipSync(JSON.stringify(files), { level: 9 });
}

export function unpackFolder(packed: Buffer, folder: string): void {
  for (const { path, size, content } of JSON.parse(gunzipSync(packed).toString()) as PackedFile[]) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, Buffer.from(content, 'base64'));
    truncateSync(file, size);
  }
}

/** Compressed files, by their first bytes where Node.js cannot make them. */

import { gzipSync } from 'node:zlib';
import { pattern } from './archives.js';

export function gzip(bytes: Buffer): Buffer {
  return gzipSync(bytes);
}

export function zstd(): Buffer {
  return Buffer.concat([Buffer.of(0x28, 0xb5, 0x2f, 0xfd), pattern(2000, 1)]);
}

export function bzip2(): Buffer {
  return Buffer.concat([Buffer.from('BZh91AY&SY'), pattern(2000, 1)]);
}

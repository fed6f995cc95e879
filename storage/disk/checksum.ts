/** Checksums of everything that is stored: xxHash. The only importer of xxhash-wasm. */

import xxhash from 'xxhash-wasm';
import { beat } from '../threads/pulse.js';

/** A checksum over bytes that come in pieces; `digest` may be asked at any point. */
export interface ChecksumStream {
  update(bytes: Uint8Array): void;
  digest(): bigint;
}

type Hashes = Awaited<ReturnType<typeof xxhash>>;

let hashes: Hashes | null = null;

/** Makes the functions of this file usable in this thread; cheap to call again. */
export async function initChecksum(): Promise<void> {
  if (hashes === null) hashes = await xxhash();
}

/** xxHash64 (seed 0) of `bytes`, which may lie in shared memory. `initChecksum` must have been awaited in this thread. */
export function checksum64(bytes: Uint8Array): bigint {
  beat();
  return ready().h64Raw(bytes);
}

/** xxHash32 (seed 0) of `bytes`: for small records that lie in a file by the million. */
export function checksum32(bytes: Uint8Array): number {
  return ready().h32Raw(bytes);
}

/** xxHash64 (seed 0) of bytes that come in pieces. Pieces of a few megabytes at most: each is copied. */
export function checksumStream(): ChecksumStream {
  const stream = ready().create64();
  return {
    update(bytes) {
      beat();
      stream.update(bytes);
    },
    digest: () => stream.digest(),
  };
}

function ready(): Hashes {
  if (hashes === null) throw new Error('checksum before initChecksum');
  return hashes;
}

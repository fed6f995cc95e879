/** Values as MessagePack: what workers and peers say to each other where it is more than bytes and less than a .proto is worth. */

import { createRequire } from 'node:module';
import type { Packr } from 'msgpackr';
import { TroupeError } from './errors.js';

/** Typed arrays, bigints and undefined come back as they were, Maps as plain objects: send them as lists. Keys are names of ours: data stands in values. */
const OPTIONS = { useRecords: false, moreTypes: true, copyBuffers: true };

let packr: Packr | undefined;

/** Loaded with the first value: a node of its own packs none. */
function packer(): Packr {
  const { Packr } = createRequire(import.meta.url)('msgpackr') as typeof import('msgpackr');
  packr = new Packr(OPTIONS);
  return packr;
}

export function pack(value: unknown): Uint8Array {
  return (packr ?? packer()).pack(value);
}

/** The caller checks what it is. Errors: `wrongInput` for bytes that are none of ours. */
export function unpack(bytes: Uint8Array): unknown {
  try {
    return (packr ?? packer()).unpack(bytes);
  } catch (error) {
    throw new TroupeError('wrongInput', `not a packed value: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Finds the key that a request has, in a time that does not depend on how much of it is right. */

import { crypto } from '../../protocols/late-modules.js';
import type { KeySetting } from './caller.js';

/** Shorter keys are compared as ones of this length, so that the time tells nothing of their lengths either. */
const COMPARED_BYTES_MIN = 512;
const LENGTH_BYTES = 4;

export class Keys {
  readonly #known: readonly { readonly setting: KeySetting; readonly bytes: Buffer }[];
  readonly #given: Buffer;
  readonly #equal = crypto().timingSafeEqual;

  /** keys: at least one, none empty. */
  constructor(keys: ReadonlyMap<KeySetting, string>) {
    const bytes = [...keys].map(([setting, key]) => [setting, Buffer.from(key)] as const);
    const size = LENGTH_BYTES + Math.max(COMPARED_BYTES_MIN, ...bytes.map(([, key]) => key.length));
    this.#known = bytes.map(([setting, key]) => ({ setting, bytes: framed(Buffer.alloc(size), key.toString('latin1')) }));
    this.#given = Buffer.alloc(size);
  }

  /** The setting whose key this is; null: it is none. credential: one character for each byte. */
  find(credential: string): KeySetting | null {
    const given = framed(this.#given, credential);
    let found: KeySetting | null = null;
    // Each key is compared, also after the right one.
    for (const { bytes, setting } of this.#known) if (this.#equal(bytes, given)) found ??= setting;
    return found;
  }
}

/** Length and bytes of a key; what a buffer has no room for is left out, and the length tells. */
function framed(buffer: Buffer, key: string): Buffer {
  buffer.fill(0);
  buffer.writeUInt32LE(key.length);
  buffer.write(key, LENGTH_BYTES, 'latin1');
  return buffer;
}

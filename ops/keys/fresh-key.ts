/** Keys that nobody guesses. */

import { crypto } from '../../protocols/late-modules.js';

/** 256 bit: as many as the signature of a token has (HS256). Source: RFC 7518, 3.2. */
const KEY_BYTES = 32;

/** A new random key, 43 characters that need no quotes in a header, a URL, YAML or a shell. */
export function freshKey(): string {
  // A key that begins with a dash would look like an option.
  for (;;) {
    const key = crypto().randomBytes(KEY_BYTES).toString('base64url');
    if (!key.startsWith('-')) return key;
  }
}

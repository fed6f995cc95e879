/** Troupe's own version. */

import { readFileSync } from 'node:fs';

/** From `package.json`, which lies above the built files as above the sources. */
export function ownVersion(): string {
  for (const place of ['../package.json', '../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(place, import.meta.url), 'utf8')) as { name?: string; version?: string };
      if (name === 'troupe' && version !== undefined) return version;
    } catch {
      // Not here: the next place.
    }
  }
  return '0.0.0';
}

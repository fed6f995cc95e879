/** Files in which the system tells of itself and of this process. */

import { readFileSync } from 'node:fs';

/** The text of such a file; empty where the system has none, or no descriptor is left to ask with. */
export function readSystemFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

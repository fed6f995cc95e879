/** Files of Linux's /proc, which go with their process or thread, and are nowhere else: nothing is read then. */

import { readdirSync, readFileSync } from 'node:fs';

export function procEntries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

export function procText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

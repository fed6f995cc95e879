/**
 * Notes on disk that logged operations are about to be applied, so that operations that end the process are found: applied at each start,
 * they would keep the node from ever starting (Op-O6).
 */

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';

/** So many times the process, or its thread, may end while the same operations are applied. */
const ENDS_MAX = 2;
const FILE = 'applying.json';

interface Note {
  /** The first operation that was to be applied, and where in it its next slice begins. */
  readonly place: string;
  /** Tries of which no end is known, the last one included. */
  readonly tries: number;
}

export class Attempts {
  private readonly file: string;

  constructor(folder: string) {
    this.file = path.join(folder, FILE);
  }

  /**
   * Notes a try to apply what is logged. place: the first operation, and where in it its next slice begins. The note is not synchronised: it
   * survives the end of the process, and a power cut is no fault of an operation. Errors: `storage`, with the reason `damaged`, if such tries
   * ended the process too often.
   */
  begin(place: string): void {
    const known = this.read();
    const tries = known?.place === place ? known.tries : 0;
    if (tries >= ENDS_MAX) throw endsProcess(place, tries, this.file);
    try {
      writeFileSync(this.file, JSON.stringify({ place, tries: tries + 1 } satisfies Note));
    } catch {
      // A full disk keeps nothing from being applied.
    }
  }

  /** The try has ended, in whatever way. */
  end(): void {
    rmSync(this.file, { force: true });
  }

  private read(): Note | null {
    try {
      const { place, tries } = JSON.parse(readFileSync(this.file, 'utf8')) as Partial<Note>;
      return typeof place === 'string' && typeof tries === 'number' ? { place, tries } : null;
    } catch {
      // There is none, or it is torn: then it counts for nothing.
      return null;
    }
  }
}

function endsProcess(place: string, tries: number, file: string): TroupeError {
  const detail =
    `applying operation ${place} has ended the process ${tries} times, so it is not tried again: give the node more ` +
    `memory and delete ${file} to try it once more, or delete the collection`;
  return new TroupeError('storage', detail, { reason: 'damaged' });
}

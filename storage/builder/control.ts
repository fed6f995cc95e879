/** How a build is watched and stopped. */

import type { FilePart } from '../memory/system-calls.js';

export interface BuildControl {
  /** Lets messages in; throws `BuildCancelled` when one of them asked to stop. Called between slices of work. */
  checkpoint(): Promise<void>;
  progress(stage: string, done: number, total: number): void;
  /** A clock in milliseconds. */
  now(): number;
  /** Gives back the memory of a part of a buffer, as far as it is whole pages: nothing of it is needed any more. Left out: it stays. */
  readonly discard?: (part: FilePart) => void;
}

/** Thrown by a checkpoint of a build that is to stop. */
export class BuildCancelled extends Error {
  constructor() {
    super('build cancelled');
    this.name = 'BuildCancelled';
  }
}

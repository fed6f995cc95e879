/** How a build is watched and stopped. */

import type { MakerCrew } from '../../vectors/maker-thread.js';
import type { FilePages } from '../memory/system-calls.js';
import { wholePages } from '../segment/layout.js';

export interface BuildControl {
  /** Lets messages in; throws `BuildCancelled` when one of them asked to stop. Called between slices of work. */
  checkpoint(): Promise<void>;
  progress(stage: string, done: number, total: number): void;
  /** A clock in milliseconds. */
  now(): number;
  /** Threads that make a large graph together with this one. Left out: there are none. */
  readonly crew?: () => Promise<MakerCrew>;
  /** Gives memory back: what is not needed any more, or is in a file, too. Left out where the process cannot. */
  readonly pages?: FilePages;
  /** Originals of so many bytes are worth leaving in a file meanwhile. Left out: large ones. */
  readonly onCallBytesMin?: number;
  /** Originals and codes in files of so many bytes get checksums of their blocks. Left out: large ones. */
  readonly sumsFromBytes?: number;
}

/** Thrown by a checkpoint of a build that is to stop. */
export class BuildCancelled extends Error {
  constructor() {
    super('build cancelled');
    this.name = 'BuildCancelled';
  }
}

/** Gives back the whole pages of a part of a memory, in bytes, whose bytes nobody needs there any more. pages: left out where the process cannot. */
export function letGoOf(pages: Pick<FilePages, 'letGo'> | undefined, { buffer }: WebAssembly.Memory, offset: number, bytes: number): void {
  const part = wholePages(offset, bytes);
  if (part !== null) pages?.letGo({ buffer, ...part });
}

/** Keeps the mark of this run in the data folder, from which the next one learns that this one was ended for memory. */

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { judgeLastRun, type LastRun, parseRunMark, type RunMark } from '../storage/memory/last-run.js';
import { readOomKills } from '../storage/memory/read-limits.js';

const FILE = '.memory.json';
/** The mark is written again when the peak has grown by this share of the limit. */
const STEP = 0.1;

export class RunKeeper {
  readonly last: LastRun;
  /** The run before has ended in order, or there was none. */
  readonly lastEnded: boolean;
  readonly #path: string;
  #mark: RunMark;
  #writtenBytes = 0;

  /** folder: it is there, and no other process has it. */
  constructor(folder: string, limitBytes: number) {
    this.#path = join(folder, FILE);
    const oomKills = readOomKills();
    this.lastEnded = !existsSync(this.#path);
    this.last = judgeLastRun(this.#read(), oomKills);
    this.#mark = { kills: this.last.kills, oomKills, limitBytes, peakBytes: 0, wasReady: false };
    this.#write();
  }

  /** The process uses so much, or plans to. */
  peak(bytes: number): void {
    if (bytes <= this.#mark.peakBytes) return;
    this.#mark = { ...this.#mark, peakBytes: bytes };
    if (bytes >= this.#writtenBytes + STEP * this.#mark.limitBytes) this.#write();
  }

  ready(): void {
    this.#mark = { ...this.#mark, wasReady: true };
    this.#write();
  }

  /** The run has ended in order. */
  end(): void {
    rmSync(this.#path, { force: true });
  }

  #read(): RunMark | null {
    try {
      return parseRunMark(readFileSync(this.#path, 'utf8'));
    } catch {
      return null;
    }
  }

  /** A folder that cannot be written is met elsewhere, with more to say about it. */
  #write(): void {
    try {
      writeFileSync(`${this.#path}.new`, JSON.stringify(this.#mark));
      renameSync(`${this.#path}.new`, this.#path);
      this.#writtenBytes = this.#mark.peakBytes;
    } catch {}
  }
}

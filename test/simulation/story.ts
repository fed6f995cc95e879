/** What happened in a run, line by line: the same for the same seed, and good to read. */

export class Story {
  readonly lines: string[] = [];
  #hash = 0x811c9dc5;
  #lines = 0;

  /** keep: false remembers only what the lines came to, for runs that nobody reads. */
  constructor(
    private readonly keep: boolean,
    private readonly nowMs: () => number,
  ) {}

  /** who: a node's name, `client 2`, `world`. */
  tell(who: string, what: string): void {
    const line = `${(this.nowMs() / 1000).toFixed(4).padStart(9)}  ${who.padEnd(8)}  ${what}`;
    for (let at = 0; at < line.length; at++) this.#hash = Math.imul(this.#hash ^ line.charCodeAt(at), 0x01000193);
    this.#lines += 1;
    if (this.keep) this.lines.push(line);
  }

  /** Two runs with the same one went the same way. */
  digest(): string {
    return `${this.#lines}:${(this.#hash >>> 0).toString(16).padStart(8, '0')}`;
  }
}

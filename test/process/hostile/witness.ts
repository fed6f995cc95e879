/**
 * An idle node on the same machine that is asked again and again: what it takes is the machine's and this program's doing, so that an answer of
 * the other node is late only by what it takes beyond that.
 */

import { type RunningNode, startNodeProcess } from '../../../ops/node-process.js';
import { RestClient } from '../../../ops/rest-client.js';

const PAUSE_MS = 100;
/** So long ago nothing is asked for: longer than any read of the run has. */
const KEPT_MS = 120_000;

interface Sight {
  readonly askedMs: number;
  readonly answeredMs: number;
}

export class Witness {
  readonly #client: RestClient;
  #sights: Sight[] = [];
  #isOver = false;
  /** Milliseconds of its slowest answer. */
  slowestMs = 0;

  private constructor(private readonly node: RunningNode) {
    this.#client = new RestClient(node.port, 1);
    void this.#look();
  }

  static async start(folder: string): Promise<Witness> {
    return new Witness(await startNodeProcess({ folder }));
  }

  /** Milliseconds of the slowest answer that it gave, or was due to give, since then (`performance.now()`). */
  slowestSince(sinceMs: number): number {
    return Math.max(0, ...this.#sights.filter(({ answeredMs }) => answeredMs >= sinceMs).map((sight) => sight.answeredMs - sight.askedMs));
  }

  get pid(): number {
    return this.node.pid;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    this.#client.close();
    await this.node.end('SIGKILL');
  }

  async #look(): Promise<void> {
    while (!this.#isOver) {
      const askedMs = performance.now();
      await this.#client.call('GET', '/livez').catch(() => null);
      // A pause that was too long counts as well: this program was not served then.
      await new Promise((done) => setTimeout(done, PAUSE_MS));
      const answeredMs = performance.now() - PAUSE_MS;
      this.slowestMs = Math.max(this.slowestMs, Math.round(answeredMs - askedMs));
      this.#sights.push({ askedMs, answeredMs });
      if (this.#sights.length > 2 * (KEPT_MS / PAUSE_MS))
        this.#sights = this.#sights.filter((sight) => sight.answeredMs >= answeredMs - KEPT_MS);
    }
  }
}

/** What all clients of a cluster whose nodes fail have in common: they ask any node that runs, and any answer has to come in time. */

import type { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import type { RandomNumbers } from '../../../ops/random.js';

/** Any answer must come by then. */
const PATIENCE_MS = 15_000;

export abstract class AskingClients {
  /** What must not be, in words. */
  readonly violations: string[] = [];
  protected stopped = false;
  /** Nodes that have just been paused, by number: they owe no answer. */
  readonly #pausedMs = new Map<number, number>();

  constructor(
    protected readonly cluster: LocalCluster,
    protected readonly random: RandomNumbers,
    protected readonly story: (line: string) => void,
  ) {}

  /** Runs so many clients until `stop`. */
  async run(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, client) => this.client(client)));
  }

  stop(): void {
    this.stopped = true;
  }

  notePause({ number }: LocalNode): void {
    this.#pausedMs.set(number, performance.now());
  }

  /** One client, by its number from 0: asks until it is `stopped`. */
  protected abstract client(number: number): Promise<void>;

  /** Null: none runs. */
  protected anyNode(): LocalNode | null {
    const running = this.cluster.nodes.filter(({ state }) => state === 'running');
    return running.length === 0 ? null : (running[this.random.integer(running.length)] as LocalNode);
  }

  /** The answer, or null where none has come in time: which is wrong of a node that ran all the while. Errors: those of `asked`. */
  protected async inTime<Answer>(node: LocalNode, what: string, asked: () => Promise<Answer>): Promise<Answer | null> {
    const launched = node.pid;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), PATIENCE_MS);
    });
    try {
      const first = await Promise.race([asked(), late]);
      if (first !== 'late') return first;
      if (node.state === 'running' && node.pid === launched && !this.#isDisturbed(node))
        this.wrong(`${what} at node ${node.number}: no answer within ${PATIENCE_MS} ms`);
      return null;
    } finally {
      clearTimeout(timer);
    }
  }

  protected wrong(what: string): void {
    this.story(`!!! ${what}`);
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push(what);
  }

  #isDisturbed({ number }: LocalNode): boolean {
    return performance.now() - (this.#pausedMs.get(number) ?? Number.NEGATIVE_INFINITY) < PATIENCE_MS * 2;
  }
}

const VIOLATIONS_MAX = 20;

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}

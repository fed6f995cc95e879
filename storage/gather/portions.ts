/** The questions of one read to shards: those asked in one turn to the same shards go together, as portions. */

import type { GatherExplainer } from '../explain/gather-explainer.js';
import { timeLimitReached } from '../threads/deadline.js';
import { encodePlainPortion } from '../threads/plain-portion.js';
import type { AnswerOf, Ask, ShardAnswer } from '../threads/portion.js';
import { decodePortionAnswer, encodePortion } from '../threads/portion-codec.js';
import type { GatherAsk } from './access.js';
import type { GatherActs } from './context.js';
import type { Source } from './source.js';

/** More asks than this are several portions, which several readers of a node can work on. */
const PORTION_ASKS_MAX = 32;

interface Waiting {
  readonly ask: Ask;
  readonly resolve: (answers: readonly ShardAnswer[]) => void;
  readonly reject: (error: unknown) => void;
}

interface Together {
  readonly to: Omit<GatherAsk, 'body'>;
  readonly asks: Waiting[];
}

export class Portions {
  private waiting = new Map<string, Together>();
  private asked = 0;
  private answered = 0;
  private slowestMs = 0;

  constructor(
    private readonly acts: Pick<GatherActs, 'isPlain' | 'scatter' | 'expired' | 'later' | 'nowMs'>,
    private readonly explainer: GatherExplainer | null = null,
  ) {}

  /**
   * The answers of the nodes that have the shards. shards: those of the source that are asked.
   * Errors: `timeout`; those of `scatter` and of the ask, or of another one that went along.
   */
  ask<One extends Ask>(source: Source, ask: One, shards = source.shards): Promise<readonly AnswerOf[One['kind']][]> {
    if (this.acts.expired()) return Promise.reject(timeLimitReached());
    return new Promise((resolve, reject) => {
      const { collection } = source;
      const to = JSON.stringify([collection, shards]);
      if (this.waiting.size === 0) this.acts.later(() => this.send());
      const together = this.waiting.get(to) ?? { to: { collection, shards }, asks: [] };
      this.waiting.set(to, together);
      together.asks.push({ ask, resolve: resolve as Waiting['resolve'], reject });
    });
  }

  /** How the shards were asked so far. */
  inWords(): string {
    const { answered, asked, slowestMs } = this;
    return `shards asked ${asked} times, ${answered} answers of nodes, the slowest after ${Math.round(slowestMs)} ms`;
  }

  /** Errors: `timeout` when the time of the request is over. */
  checkTime(): void {
    if (this.acts.expired()) throw timeLimitReached();
  }

  private send(): void {
    const all = [...this.waiting.values()];
    this.waiting = new Map();
    for (const { to, asks } of all) {
      for (let from = 0; from < asks.length; from += PORTION_ASKS_MAX) this.sendPart(to, asks.slice(from, from + PORTION_ASKS_MAX));
    }
  }

  private sendPart(to: Together['to'], asks: readonly Waiting[]): void {
    this.answersTo(to, asks).then(
      (nodes) => {
        asks.forEach(({ resolve }, at) => {
          resolve(nodes.map((answers) => answers[at] as ShardAnswer));
        });
      },
      (error: unknown) => {
        for (const { reject } of asks) reject(error);
      },
    );
  }

  private async answersTo(to: Together['to'], asks: readonly Waiting[]): Promise<(readonly ShardAnswer[])[]> {
    const { explainer } = this;
    const portion = {
      asks: asks.map(({ ask }) => ask),
      ...(explainer !== null && to.collection === null && { explain: true }),
    };
    const plain = this.acts.isPlain === true ? encodePlainPortion(portion) : null;
    // What packs it writes others to the same memory.
    const body = plain ?? new Uint8Array(encodePortion(portion));
    const asked = explainer?.asked();
    const sentMs = this.acts.nowMs();
    this.asked++;
    const answers = await this.acts.scatter({ ...to, body });
    asked?.();
    this.answered += answers.length;
    this.slowestMs = Math.max(this.slowestMs, this.acts.nowMs() - sentMs);
    const decoded = answers.map(decodePortionAnswer);
    for (const { explanation } of decoded) explainer?.add(explanation);
    return decoded.map((answer) => answer.answers);
  }
}

/** Notes how a read over many nodes is carried out in the thread that asks for portions, and merges what these tell of themselves. */

import type { ExplainedAdvice, ExplainedPortion, ExplainedShard } from '../../protocols/model/explanation.js';
import { adviceSentence } from '../../query/explain/sentences.js';
import { rounded, StageTimes } from './explainer.js';

export class GatherExplainer {
  private readonly stages = new StageTimes();
  private readonly shards: ExplainedShard[] = [];
  private readonly advice = new Map<string, ExplainedAdvice>();
  private lastMs: number;
  /** Portions that are not answered. */
  private open = 0;
  /** Rounds of questions so far: several that are open together are one. */
  private rounds = 0;

  /** startedMs: when the read began, by `performance.now()`. */
  constructor(startedMs: number) {
    this.lastMs = startedMs;
  }

  /** Of all stages together. */
  get us(): number {
    return this.stages.us;
  }

  /** Time since the last mark was for a stage. */
  mark(stage: string, bytes = 0): void {
    const now = performance.now();
    this.stages.add(stage, (now - this.lastMs) * 1000, bytes);
    this.lastMs = now;
  }

  /** Shards are asked. Returns what is called when they have answered. */
  asked(): () => void {
    if (this.open++ === 0) {
      this.mark('merge');
      this.rounds++;
    }
    return () => {
      if (--this.open === 0) this.mark('shards');
    };
  }

  /** explanation: undefined where the node is of a release that does not tell. */
  add(explanation: ExplainedPortion | undefined): void {
    if (explanation === undefined) return;
    const { advice, shards } = explanation;
    this.shards.push(...shards.map((shard) => ({ ...shard, round: Math.max(0, this.rounds - 1) })));
    for (const one of advice) {
      const known = this.advice.get(one.field);
      this.advice.set(one.field, known === undefined ? one : together(known, one));
    }
  }

  told(thread: string): ExplainedPortion {
    const shards = [...this.shards].sort((a, b) => a.round - b.round || a.shard_id - b.shard_id);
    return { thread, stages: this.stages.list(), shards, advice: [...this.advice.values()] };
  }
}

function together(a: ExplainedAdvice, b: ExplainedAdvice): ExplainedAdvice {
  const [rowsRead, rowsWithIndex] = [a.rows_read + b.rows_read, a.rows_with_index + b.rows_with_index];
  return {
    ...a,
    reason: adviceSentence(a.field, rowsRead, rowsWithIndex),
    rows_read: rowsRead,
    rows_with_index: rowsWithIndex,
    rows_sampled: a.rows_sampled + b.rows_sampled,
    time_us: rounded(a.time_us + b.time_us),
    time_us_with_index: rounded(a.time_us_with_index + b.time_us_with_index),
  };
}

/** Who is told how a read was carried out: the client that asks, the trace that the call is part of, or both; also from thread to thread. */

import type { ExplainRequest, Explanation } from '../../protocols/model/explanation.js';

/** What an answer to another thread says of it. */
export interface ThreadExplanation {
  readonly explanation?: Explanation;
  readonly plan?: string;
  /** For the trace. */
  readonly trace?: Explanation;
}

const NOTHING: ThreadExplanation = {};

export function isExplained({ trace, wanted }: ExplainRequest): boolean {
  return wanted || trace !== undefined;
}

export function tellExplanation(explain: ExplainRequest, explanation: Explanation): void {
  if (explain.wanted) explain.explanation = explanation;
  if (explain.trace !== undefined) explain.trace.explanation = explanation;
}

export function toldIn(explain: ExplainRequest | undefined): ThreadExplanation {
  if (explain === undefined) return NOTHING;
  const { explanation, plan, trace } = explain;
  const traced = trace?.explanation ?? null;
  if (explanation === null && plan === undefined && traced === null) return NOTHING;
  return {
    ...(explanation === null ? {} : { explanation }),
    ...(plan === undefined ? {} : { plan }),
    ...(traced === null ? {} : { trace: traced }),
  };
}

/** Takes what an answer of another thread says. */
export function takeTold(explain: ExplainRequest | undefined, { explanation, plan, trace }: ThreadExplanation): void {
  if (explain === undefined) return;
  if (explanation !== undefined) explain.explanation = explanation;
  if (plan !== undefined) explain.plan = plan;
  if (trace !== undefined && explain.trace !== undefined) explain.trace.explanation = trace;
}

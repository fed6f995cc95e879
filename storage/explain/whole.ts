/** The explanation of a whole read. */

import type { ExplainedPortion, Explanation } from '../../protocols/model/explanation.js';
import { summaryOf } from '../../query/explain/sentences.js';
import type { ReadOperation } from '../threads/messages.js';
import { rounded } from './explainer.js';

export function explanationOf(operation: ReadOperation, collection: string, us: number, told: ExplainedPortion): Explanation {
  const { advice, shards, stages, thread } = told;
  return { operation, collection, thread, time_us: rounded(us), summary: summaryOf(told), stages, shards, advice };
}

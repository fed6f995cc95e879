/** Answers one read operation from what the shards of many nodes answer: decode, ask, merge, encode. */

import { encodeRead } from '../answers/read-answer.js';
import { GatherExplainer } from '../explain/gather-explainer.js';
import { isExplained, tellExplanation } from '../explain/told.js';
import { explanationOf } from '../explain/whole.js';
import { decodeRead, type ReadRequest } from '../requests/read-request.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { readWalk } from '../walk/read.js';
import { type GatherActs, gatherContext } from './context.js';
import { walkShards } from './shard-answers.js';

/** As `runRead` of `../reader/operations.ts`. thread: for explanations. */
export async function gatherRead(operation: ReadOperation, request: RawRequest, acts: GatherActs, thread: string): Promise<Uint8Array> {
  const startedMs = acts.nowMs();
  return gatherDecoded(operation, request, decodeRead(operation, request), acts, { thread, startedMs });
}

/** The same of a request that was decoded. startedMs: when that began, by `acts.nowMs`. */
export async function gatherDecoded(
  operation: ReadOperation,
  request: RawRequest,
  read: ReadRequest,
  acts: GatherActs,
  { startedMs, thread }: { readonly startedMs: number; readonly thread: string },
): Promise<Uint8Array> {
  const { body, explain, path } = request;
  const explainer = explain !== undefined && isExplained(explain) ? new GatherExplainer(startedMs) : null;
  explainer?.mark('decode', body?.byteLength ?? 0);
  const context = gatherContext(acts, explainer);
  const result = await walkShards(context, (scope) => readWalk(scope, read));
  explainer?.mark('merge');
  const answer = encodeRead(operation, request, result);
  if (explainer !== null && explain !== undefined) {
    explainer.mark('encode', answer.byteLength);
    tellExplanation(explain, explanationOf(operation, path.collection_name ?? '', explainer.us, explainer.told(thread)));
  }
  if (explain?.planFromMs !== undefined && acts.nowMs() - startedMs >= explain.planFromMs)
    explain.plan = explain.explanation?.summary ?? context.portions.inWords();
  return answer;
}

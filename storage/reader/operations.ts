/** Carries out one read operation on snapshots: decode, run, encode. */

import type { ExplainRequest } from '../../protocols/model/explanation.js';
import { encodeRead } from '../answers/read-answer.js';
import { adviceOf } from '../explain/advise.js';
import { Explainer, NOWHERE } from '../explain/explainer.js';
import { isExplained, tellExplanation } from '../explain/told.js';
import { explanationOf } from '../explain/whole.js';
import { decodeRead, type ReadRequest } from '../requests/read-request.js';
import { limitsOf } from '../threads/deadline.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { readWalk } from '../walk/read.js';
import { walkRows } from './query/row-answers.js';
import type { ReadContext } from './read-context.js';

/**
 * JSON of the `result`, or the message of the answer; where the request asks for an explanation, it is in the request. Errors: what decoding and
 * running throw.
 */
export function runRead(operation: ReadOperation, request: RawRequest, context: ReadContext): Uint8Array {
  const startedMs = performance.now();
  const read = decodeRead(operation, request);
  const { explain } = request;
  if (explain !== undefined && isExplained(explain)) return explainedRead(operation, request, read, context, { explain, startedMs });
  return encodeRead(
    operation,
    request,
    walkRows(context, (scope) => readWalk(scope, read)),
    limitsOf(context.snapshots),
  );
}

function explainedRead(
  operation: ReadOperation,
  request: RawRequest,
  read: ReadRequest,
  context: ReadContext,
  { explain, startedMs }: { readonly explain: ExplainRequest; readonly startedMs: number },
): Uint8Array {
  const { place = NOWHERE, snapshots } = context;
  const explainer = new Explainer(place, startedMs);
  explainer.mark('decode', request.body?.byteLength ?? 0);
  const answer = explainer.run(() => {
    const result = walkRows(context, (scope) => readWalk(scope, read));
    explainer.mark('other');
    const encoded = encodeRead(operation, request, result, limitsOf(snapshots));
    explainer.mark('encode', encoded.byteLength);
    return encoded;
  });
  const told = { ...explainer.told(snapshots), advice: explain.wanted ? adviceOf(explainer) : [] };
  tellExplanation(explain, explanationOf(operation, place.collection, explainer.wholeUs, told));
  return answer;
}

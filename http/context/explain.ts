/** How answers tell how they came about, to requests with `explain: true`. */

import { encodeMessage } from '../../protocols/grpc/encode.js';
import type { MessageType } from '../../protocols/grpc/schema.js';
import type { ExplainRequest, Explanation } from '../../protocols/model/explanation.js';

/** The member of the envelope, with its comma. */
export function explainMember(explanation: Explanation): string {
  return `,"explain":${JSON.stringify(explanation)}`;
}

/** The field `explanation` of an answer of this type, as JSON text; none where none was asked for. */
export function explainFields(answer: MessageType, explain: ExplainRequest | undefined): readonly Uint8Array[] {
  if (explain === undefined || explain.explanation === null) return NONE;
  return [encodeMessage(answer, { explanation: JSON.stringify(explain.explanation) })];
}

const NONE: readonly Uint8Array[] = [];

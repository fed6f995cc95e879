/** Vectors that this node makes itself: of texts, by BM25. It has no other model. */

import { TroupeError } from '../../protocols/errors.js';
import type { InferenceInput, SparseVector } from '../../protocols/model/vector.js';
import { bm25Document, bm25Query } from '../../query/text/bm25.js';

const INPUTS: Readonly<Record<InferenceInput['kind'], string>> = {
  bm25: 'a text',
  document: 'a text',
  image: 'an image',
  object: 'an object',
};

/** The vector of what is stored. Errors: `unsupported` for a model that this node does not have. */
export function embedStored(input: InferenceInput): SparseVector {
  if (input.kind !== 'bm25') throw noModel(input);
  return bm25Document(input.text, input.options);
}

/** The vector of what is asked for. Errors: as `embedStored`. */
export function embedQueried(input: InferenceInput): SparseVector {
  if (input.kind !== 'bm25') throw noModel(input);
  return bm25Query(input.text, input.options);
}

function noModel({ kind, model }: InferenceInput): TroupeError {
  const detail = `this node has no model ${JSON.stringify(model)} for ${INPUTS[kind]}; send a vector, or for a sparse vector a text with the model \`bm25\``;
  return new TroupeError('unsupported', detail);
}

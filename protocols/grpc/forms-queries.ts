/** REST forms of reading requests: searches, queries, recommendations and their kin. */

import { TroupeError } from '../errors.js';
import type { JsonValue } from '../model/payload.js';
import { shortestFloat } from './float.js';
import { chosen, chosenMember, listOf, type MessageFields, object, type RestForm, type RestForms, tagged } from './form.js';
import { floatsOf, sparseForm } from './forms-common.js';

export const QUERY_FORMS: RestForms = {
  GetPoints: (fields) => object({ ...pageOf(fields), ids: fields.ids ?? [] }),
  ScrollPoints: (fields) => object(pageOf(fields)),
  CountPoints: (fields) => object(pageOf(fields)),
  FacetCounts: (fields) => object(pageOf(fields)),
  SearchMatrixPoints: (fields) => object(pageOf(fields)),

  SearchPoints: searchForm,
  SearchPointGroups: searchForm,
  SearchBatchPoints: batchForm('search_points'),
  RecommendPoints: recommendForm,
  RecommendPointGroups: recommendForm,
  RecommendBatchPoints: batchForm('recommend_points'),
  DiscoverPoints: (fields) => object({ ...pageOf(fields), context: fields.context }),
  DiscoverBatchPoints: batchForm('discover_points'),
  QueryPoints: (fields) => object(pageOf(fields)),
  QueryPointGroups: (fields) => object(pageOf(fields)),
  QueryBatchPoints: batchForm('query_points'),

  TargetVector: (fields) => chosen(fields, 'the value of a target'),
  VectorExample: (fields) => chosen(fields, 'the value of an example'),
  LookupLocation: ({ collection_name, vector_name, shard_key_selector }) =>
    object({ collection: collection_name, vector: vector_name, shard_key: shard_key_selector }),
  StartFrom: (fields) => chosen(fields, 'the value of `start_from`'),

  Query: queryForm,
  ContextInput: listOf('pairs'),
  RelevanceFeedbackInput: (fields) => object({ ...fields, feedback: fields.feedback ?? [] }),
  FeedbackStrategy: tagged('the kind of a feedback strategy'),
  Rrf: ({ k, weights }, vectors) => object({ k, weights: weights === undefined ? undefined : finiteFloats(weights, vectors) }),

  Formula: ({ expression, defaults }) => object({ formula: expression, defaults }),
  Expression: expressionForm,
  MultExpression: listOf('mult'),
  SumExpression: listOf('sum'),
};

/** Fields of requests that REST names otherwise, or has in the path and the query parameters. */
function pageOf({ collection_name, read_consistency, timeout, shard_key_selector, with_vectors, ...fields }: MessageFields): MessageFields {
  return { ...fields, shard_key: shard_key_selector, with_vector: with_vectors };
}

function batchForm(name: string): RestForm {
  return (fields) => object({ searches: fields[name] ?? [], explain: fields.explain });
}

function searchForm({ vector, vector_name, sparse_indices, ...fields }: MessageFields, vectors: Float32Array[]): JsonValue {
  const value = sparse_indices === undefined ? (vector ?? []) : sparseForm(sparse_indices, vector, vectors);
  const named = vector_name !== undefined || sparse_indices !== undefined;
  return object({ ...pageOf(fields), vector: named ? { name: vector_name ?? '', vector: value } : value });
}

function recommendForm({ positive, negative, positive_vectors, negative_vectors, ...fields }: MessageFields): JsonValue {
  return object({ ...pageOf(fields), positive: both(positive, positive_vectors), negative: both(negative, negative_vectors) });
}

function both(ids: JsonValue | undefined, vectors: JsonValue | undefined): JsonValue {
  return [...((ids ?? []) as JsonValue[]), ...((vectors ?? []) as JsonValue[])];
}

function queryForm(fields: MessageFields): JsonValue {
  const [kind, value] = chosenMember(fields, 'the kind of a query');
  switch (kind) {
    case 'formula':
    case 'nearest_with_mmr':
      // Both are objects of REST that name their kind themselves.
      return value;
    default:
      return { [kind]: value };
  }
}

function expressionForm(fields: MessageFields): JsonValue {
  const [kind, value] = chosenMember(fields, 'the kind of an expression');
  switch (kind) {
    case 'constant':
    case 'variable':
    case 'condition':
      return value;
    default:
      return { [kind]: value };
  }
}

function finiteFloats(list: JsonValue, vectors: readonly Float32Array[]): number[] {
  return floatsOf(list, vectors).map((value) => {
    if (!Number.isFinite(value)) throw new TroupeError('malformedBody', `\`weights\`: ${value} is not a finite number`);
    return shortestFloat(value);
  });
}

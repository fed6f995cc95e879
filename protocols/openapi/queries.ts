/** Schemas of searches. */

import {
  ANYTHING,
  any,
  COUNT,
  described,
  EXPLAIN,
  FLAG,
  fields,
  integer,
  list,
  map,
  NUMBER,
  numberWithin,
  ref,
  TEXT,
  words,
} from './schema.js';

const SHOWN = { with_payload: ref('PayloadSelection'), with_vector: ref('VectorSelection') };
const SHARD = { shard_key: ref('ShardKeySelector') };
const LIMITS = { limit: integer(1), offset: COUNT };
const NODE = {
  query: ref('Query'),
  using: described('Name of the vector.', TEXT),
  filter: ref('Filter'),
  params: ref('SearchParams'),
  score_threshold: NUMBER,
  lookup_from: ref('LookupLocation'),
  prefetch: any(ref('Prefetch'), list(ref('Prefetch'))),
};
const GROUPED = {
  group_by: described('Payload key whose values make the groups.', ref('Key')),
};
const GROUPED_OPTIONS = {
  with_lookup: any(TEXT, fields({ collection: TEXT }, { with_payload: ref('PayloadSelection'), with_vectors: ref('VectorSelection') })),
};
const SEARCH_OPTIONS = { ...EXPLAIN, ...SHARD, ...SHOWN, filter: ref('Filter'), params: ref('SearchParams'), score_threshold: NUMBER };
const EXAMPLES = list(ref('Example'));
const RECOMMEND_OPTIONS = {
  ...SEARCH_OPTIONS,
  positive: EXAMPLES,
  negative: EXAMPLES,
  strategy: ref('RecommendStrategy'),
  using: TEXT,
  lookup_from: ref('LookupLocation'),
};
const PAIRS = any(ref('ContextPair'), list(ref('ContextPair')));
const EXPRESSION = ref('Expression');
const DECAY = fields({ x: EXPRESSION }, { target: EXPRESSION, scale: NUMBER, midpoint: NUMBER });

export const QUERY_SCHEMAS = {
  SearchParams: fields(
    {},
    {
      hnsw_ef: described('Candidates a search keeps; fewer in each of several shards.', COUNT),
      exact: described('Compare with every point.', FLAG),
      indexed_only: FLAG,
      quantization: fields({}, { ignore: FLAG, rescore: FLAG, oversampling: numberWithin(1) }),
      acorn: fields({}, { enable: FLAG, max_selectivity: numberWithin(0, 1) }),
    },
  ),
  LookupLocation: described('Another collection to take points’ vectors from.', fields({ collection: TEXT }, { vector: TEXT, ...SHARD })),
  VectorInput: described(
    'A vector, the id of a point that has one, or something to make one of.',
    any(ref('DenseVector'), ref('SparseVector'), ref('MultiVector'), ref('PointId'), ref('Document'), ref('Image'), ref('InferenceObject')),
  ),
  RecommendStrategy: words('average_vector', 'best_score', 'sum_scores'),
  RecommendInput: described(
    'At least one example.',
    any(
      fields({ positive: list(ref('VectorInput'), 1) }, { negative: list(ref('VectorInput')), strategy: ref('RecommendStrategy') }),
      fields({ negative: list(ref('VectorInput'), 1) }, { positive: list(ref('VectorInput')), strategy: ref('RecommendStrategy') }),
    ),
  ),
  ContextPair: fields({ positive: ref('VectorInput'), negative: ref('VectorInput') }),
  Query: any(
    ref('VectorInput'),
    fields({ nearest: ref('VectorInput') }, { mmr: fields({}, { diversity: numberWithin(0, 1), candidates_limit: integer(0, 16384) }) }),
    fields({
      recommend: ref('RecommendInput'),
    }),
    fields({ discover: fields({ target: ref('VectorInput'), context: PAIRS }) }),
    fields({ context: PAIRS }),
    fields({ order_by: ref('OrderBy') }),
    fields({ fusion: words('rrf', 'dbsf') }),
    fields({ rrf: fields({}, { k: integer(1), weights: list(NUMBER) }) }),
    fields({ formula: EXPRESSION }, { defaults: map(ANYTHING) }),
    fields({ sample: words('random') }),
    fields({
      relevance_feedback: fields({
        target: ref('VectorInput'),
        feedback: list(fields({ example: ref('VectorInput'), score: NUMBER }), 1),
        strategy: fields({ naive: fields({ a: NUMBER, b: numberWithin(0), c: NUMBER }) }),
      }),
    }),
  ),
  Expression: described(
    'A number, a payload key or `$score`, a condition (1 or 0), or an operation on expressions.',
    any(
      NUMBER,
      ref('Variable'),
      ref('Condition'),
      fields({ geo_distance: fields({ origin: ref('GeoPoint'), to: ref('Key') }) }),
      fields({ datetime: ref('Datetime') }),
      fields({ datetime_key: ref('Key') }),
      fields({ mult: list(EXPRESSION) }),
      fields({ sum: list(EXPRESSION) }),
      fields({ neg: EXPRESSION }),
      fields({ abs: EXPRESSION }),
      fields({ div: fields({ left: EXPRESSION, right: EXPRESSION }, { by_zero_default: NUMBER }) }),
      fields({ sqrt: EXPRESSION }),
      fields({ pow: fields({ base: EXPRESSION, exponent: EXPRESSION }) }),
      fields({ exp: EXPRESSION }),
      fields({ log10: EXPRESSION }),
      fields({ ln: EXPRESSION }),
      fields({ lin_decay: DECAY }),
      fields({ exp_decay: DECAY }),
      fields({ gauss_decay: DECAY }),
    ),
  ),
  Variable: described('A payload key, `$score`, or `$score[i]` for the i-th prefetch.', ref('Key')),
  Prefetch: described('A search whose results the one around it works on.', fields({}, { ...NODE, limit: integer(1) })),
  QueryRequest: fields({}, { ...EXPLAIN, ...NODE, ...SHARD, ...SHOWN, ...LIMITS }),
  QueryBatch: fields({ searches: list(ref('QueryRequest')) }, EXPLAIN),
  QueryGroups: fields(GROUPED, { ...EXPLAIN, ...NODE, ...SHARD, ...SHOWN, ...GROUPED_OPTIONS, limit: integer(1), group_size: integer(1) }),

  NamedVector: any(
    ref('DenseVector'),
    fields({ name: TEXT, vector: ref('DenseVector') }),
    fields({ name: TEXT, vector: ref('SparseVector') }),
  ),
  Search: fields({ vector: ref('NamedVector'), limit: integer(1) }, { ...SEARCH_OPTIONS, offset: COUNT }),
  SearchBatch: fields({ searches: list(ref('Search')) }, EXPLAIN),
  SearchGroups: fields(
    { vector: ref('NamedVector'), ...GROUPED, limit: integer(1), group_size: integer(1) },
    { ...SEARCH_OPTIONS, ...GROUPED_OPTIONS },
  ),
  Example: any(ref('PointId'), ref('DenseVector'), ref('SparseVector')),
  Recommend: fields({ limit: integer(1) }, { ...RECOMMEND_OPTIONS, offset: COUNT }),
  RecommendBatch: fields({ searches: list(ref('Recommend')) }, EXPLAIN),
  RecommendGroups: fields({ ...GROUPED, limit: integer(1), group_size: integer(1) }, { ...RECOMMEND_OPTIONS, ...GROUPED_OPTIONS }),
  Discover: fields(
    { limit: integer(1) },
    {
      ...EXPLAIN,
      ...SHARD,
      ...SHOWN,
      target: ref('Example'),
      context: list(fields({ positive: ref('Example'), negative: ref('Example') })),
      filter: ref('Filter'),
      params: ref('SearchParams'),
      offset: COUNT,
      using: TEXT,
      lookup_from: ref('LookupLocation'),
    },
  ),
  DiscoverBatch: fields({ searches: list(ref('Discover')) }, EXPLAIN),

  QueryResult: fields({ points: list(ref('ScoredPoint')) }),
  Groups: fields({
    groups: list(fields({ id: any(TEXT, NUMBER), hits: list(ref('ScoredPoint')) }, { lookup: ref('Record') })),
  }),
};

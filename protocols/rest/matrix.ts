/** Decodes `POST /collections/{c}/points/search/matrix/pairs` and `…/offsets`. */

import { DEFAULT_VECTOR } from '../model/collection.js';
import type { MatrixQuery } from '../model/query.js';
import { Fields, type JsonObject, wrongType } from './fields.js';
import { decodeFilter } from './filter.js';
import { shardKeyIn } from './request-fields.js';
import type { RequestValue } from './request-value.js';

const SAMPLE_DEFAULT = 10;
const LIMIT_DEFAULT = 3;

/** Errors: `malformedBody`, `invalidValue` for a sample below 2 or a limit of 0. */
export function decodeMatrix({ value }: RequestValue): MatrixQuery {
  const fields = Fields.of(value, 'search_request');
  // It is looked at where all requests are; here it is only refused if it is no flag.
  fields.boolean('explain');
  const using = fields.value('using') ?? DEFAULT_VECTOR;
  if (typeof using !== 'string') throw wrongType('using', using, 'a string');
  return {
    filter: decodeFilter(fields.value('filter'), 'filter'),
    sample: fields.integer('sample', { min: 2 }) ?? SAMPLE_DEFAULT,
    limit: fields.integer('limit', { min: 1 }) ?? LIMIT_DEFAULT,
    using,
    ...shardKeyIn(value as JsonObject),
  };
}

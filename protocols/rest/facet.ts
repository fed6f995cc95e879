/** Decodes `POST /collections/{c}/facet`. */

import { TroupeError } from '../errors.js';
import type { FacetQuery } from '../model/query.js';
import { Fields, type JsonObject } from './fields.js';
import { decodeFilter, decodeKey } from './filter.js';
import { shardKeyIn } from './request-fields.js';
import type { RequestValue } from './request-value.js';

const LIMIT_DEFAULT = 10;

/** Errors: `malformedBody`, `invalidValue` for a limit of 0. */
export function decodeFacet({ value }: RequestValue): FacetQuery {
  const fields = Fields.of(value, 'facet_request');
  // It is looked at where all requests are; here it is only refused if it is no flag.
  fields.boolean('explain');
  const key = fields.value('key');
  if (key === undefined) throw new TroupeError('malformedBody', 'missing field `key`');
  return {
    key: decodeKey(key, 'key'),
    filter: decodeFilter(fields.value('filter'), 'filter'),
    limit: fields.integer('limit', { min: 1 }) ?? LIMIT_DEFAULT,
    exact: fields.boolean('exact') ?? false,
    ...shardKeyIn(value as JsonObject),
  };
}

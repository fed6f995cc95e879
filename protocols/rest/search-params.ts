/** Decodes `params`: how a search is carried out. Errors: `malformedBody`, `invalidValue`. */

import type { JsonValue } from '../model/payload.js';
import { DEFAULT_SEARCH_PARAMS, type QuantizationParams, type SearchParams } from '../model/query.js';
import { isObject, wrongType } from './fields.js';
import { isGiven, numberOf, outOfRange, readFlag, unsignedField } from './request-fields.js';

/** The parameters of `value`; the defaults when it is null or absent. path: how messages name the request. */
export function paramsOf(value: JsonValue | undefined, path: string): SearchParams {
  if (!isGiven(value)) return DEFAULT_SEARCH_PARAMS;
  if (!isObject(value)) throw wrongType('params', value, 'struct SearchParams');
  checkAcorn(value.acorn, `${path}.params.acorn`);
  return {
    hnswEf: unsignedField(value, 'hnsw_ef', path) ?? null,
    exact: readFlag(value, 'exact', false),
    indexedOnly: readFlag(value, 'indexed_only', false),
    quantization: quantizationOf(value.quantization, `${path}.params.quantization`),
  };
}

function quantizationOf(value: JsonValue | undefined, path: string): QuantizationParams {
  if (!isGiven(value)) return DEFAULT_SEARCH_PARAMS.quantization;
  if (!isObject(value)) throw wrongType('quantization', value, 'struct QuantizationSearchParams');
  const ignore = readFlag(value, 'ignore', false);
  const rescore = isGiven(value.rescore) ? readFlag(value, 'rescore', true) : null;
  const oversampling = isGiven(value.oversampling) ? numberOf(value.oversampling, 'oversampling') : null;
  if (oversampling !== null && oversampling < 1) throw outOfRange(`${path}.oversampling`, oversampling, '1.0 or larger');
  return { ignore, rescore, oversampling };
}

/** Filtered walks take two hops where the filter is narrow, asked or not; the parameters are only checked. */
function checkAcorn(value: JsonValue | undefined, path: string): void {
  if (!isGiven(value)) return;
  if (!isObject(value)) throw wrongType('acorn', value, 'struct AcornSearchParams');
  readFlag(value, 'enable', false);
  if (!isGiven(value.max_selectivity)) return;
  const selectivity = numberOf(value.max_selectivity, 'max_selectivity');
  if (selectivity < 0 || selectivity > 1) throw outOfRange(`${path}.max_selectivity`, selectivity, 'from 0.0 to 1.0');
}

/** What the codes of a vector are made by, as a configuration comes to it. */

import { type CollectionConfig, type QuantizationConfig, vectorsByName } from '../../protocols/model/collection.js';
import { codeSpec } from '../../vectors/quantizer-spec.js';
import { metricOf, type VectorPlan } from '../segment/layout.js';

/**
 * Setting of a dense vector or multivector: its own, else that of the collection; null: none. Only what codes depend on, in one order, so that
 * equal settings have equal texts: `always_ram` is left out.
 */
export function quantizationSetting(config: CollectionConfig, vector: string): QuantizationConfig | null {
  const params = vectorsByName(config.params.vectors).get(vector);
  if (params === undefined) return null;
  const setting = params.quantization_config ?? config.quantization_config;
  if (setting === null) return null;
  if ('scalar' in setting) return { scalar: { type: 'int8', quantile: setting.scalar.quantile ?? null } };
  if ('product' in setting) return { product: { compression: setting.product.compression } };
  if ('turbo' in setting) return { turbo: { bits: setting.turbo.bits ?? 'bits4' } };
  const { encoding, query_encoding } = setting.binary;
  return { binary: { encoding: encoding ?? 'one_bit', query_encoding: query_encoding ?? 'default' } };
}

/**
 * Codes to make room for in a new segment: always, as walks and MaxSim score them first. Components of one byte are their own 8-bit codes,
 * and under Cosine they are scanned.
 */
export function reservedCodes(plan: VectorPlan, setting: QuantizationConfig | null): VectorPlan['codes'] {
  const spec = setting === null ? null : codeSpec(setting, metricOf(plan.distance));
  if (plan.element === 'u8' && (spec === null || plan.distance === 'Cosine')) return null;
  return { scale: 1, origin: 0, exact: false, ...(spec === null ? {} : { spec }) };
}

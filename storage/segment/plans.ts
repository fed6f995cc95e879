/** Which vectors the segments of a collection have. Pure. */

import { type CollectionParams, type Datatype, sparseByName, vectorsByName } from '../../protocols/model/collection.js';
import { type ElementType, metricOf, type VectorLayout, type VectorPlan } from './layout.js';

/** Plans of all vectors of a collection, without codes, graphs and room for items: dense and multivectors, then sparse ones. */
export function vectorPlans(params: CollectionParams): VectorPlan[] {
  const plans: VectorPlan[] = [];
  for (const [name, { size, distance, datatype, multivector_config }] of vectorsByName(params.vectors)) {
    const kind = multivector_config === undefined ? 'dense' : 'multi';
    plans.push({ kind, name, dim: size, distance, element: elementOf(datatype), itemCapacity: 0, codes: null, graph: null });
  }
  for (const name of sparseByName(params).keys())
    plans.push({ kind: 'sparse', name, dim: 0, distance: 'Dot', element: 'f32', itemCapacity: 0, codes: null, graph: null });
  return plans;
}

/** Whether a segment's vector is what the collection now has under this name, and not one that had the name before. */
export function isCurrent(vector: VectorLayout, plan: VectorPlan | undefined): boolean {
  return plan !== undefined && plan.kind === vector.kind && plan.dim === vector.dim && metricOf(plan.distance) === vector.metric;
}

export function elementOf(datatype: Datatype | undefined): ElementType {
  switch (datatype) {
    case 'float16':
    // Four bits are all that codes of `quantization_config` keep; originals are to be more exact than codes.
    case 'turbo4':
      return 'f16';
    case 'uint8':
      return 'u8';
    default:
      return 'f32';
  }
}

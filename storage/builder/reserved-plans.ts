/** The room that a build reserves before it knows its codes and graphs; the optimizer plans with the same figures. Pure. */

import { type CollectionConfig, listedVector } from '../../protocols/model/collection.js';
import { fullScanBytes, graphSettings } from '../segment/graph-settings.js';
import { itemBytes, type VectorPlan } from '../segment/layout.js';
import { reservedLists } from '../segment/lists.js';
import { vectorPlans } from '../segment/plans.js';
import { reservedTokenLists } from '../segment/token-lists.js';
import { quantizationSetting, reservedCodes } from './quantization-settings.js';

/** What a new segment is made of. */
export interface ReservedRows {
  readonly rows: number;
  readonly withGraph: boolean;
  /** Token vectors, or components of sparse vectors, of all rows. */
  itemsOf(plan: VectorPlan): number;
  /** Left out: as the configuration says. */
  elementOf?(plan: VectorPlan): VectorPlan['element'];
}

/** Plans of all vectors of a collection, with room for codes and for graphs over all rows. */
export function reservedPlans(config: CollectionConfig, reserved: ReservedRows): VectorPlan[] {
  return vectorPlans(config.params).map((bare): VectorPlan => {
    const plan = { ...bare, element: reserved.elementOf?.(bare) ?? bare.element };
    if (plan.kind === 'dense') return reservedPlan(config, plan, reserved);
    const items = { ...plan, itemCapacity: reserved.itemsOf(plan) };
    return plan.kind === 'sparse' ? items : reservedTokens(config, items, reserved);
  });
}

function reservedPlan(config: CollectionConfig, plan: VectorPlan, { rows, withGraph }: ReservedRows): VectorPlan {
  const settings = graphSettings(config, plan.name);
  const { m } = settings;
  const coded = { ...plan, ...quantized(config, plan) };
  if (!withGraph || m === 0 || rows === 0) return coded;
  if (plan.name === listedVector(config)) return { ...coded, lists: reservedLists(rows, coded) };
  return { ...coded, graph: { ...settings, m0: 2 * m, entryRow: 0, maxLevel: 0, upperWords: upperWordsMax(rows, m) } };
}

function reservedTokens(config: CollectionConfig, plan: VectorPlan, { rows, withGraph }: ReservedRows): VectorPlan {
  const coded = { ...plan, ...quantized(config, plan) };
  const { codes, itemCapacity } = coded;
  const isWanted = withGraph && graphSettings(config, plan.name).m > 0 && codes !== null && codes.spec === undefined;
  if (!isWanted || itemCapacity * itemBytes(plan) < fullScanBytes(config, plan.name)) return coded;
  return { ...coded, tokenLists: reservedTokenLists(rows, itemCapacity) };
}

function quantized(config: CollectionConfig, plan: VectorPlan): Pick<VectorPlan, 'codes' | 'quantization'> {
  const quantization = quantizationSetting(config, plan.name);
  return { codes: reservedCodes(plan, quantization), ...(quantization === null ? {} : { quantization }) };
}

/** Words to reserve for the upper levels of a graph. A row has 1 / (m - 1) of them on average; chance stays far below this bound. */
export function upperWordsMax(rows: number, m: number): number {
  const levels = (1.5 * rows) / (m - 1) + 6 * Math.sqrt(rows) + 64;
  return Math.ceil(levels) * (1 + m);
}

/** Which rows of a new segment go together: by tenant, and by the values that get graphs of their own. */

import { parseValues } from '../../protocols/json.js';
import { type CollectionConfig, vectorsByName } from '../../protocols/model/collection.js';
import type { Payload } from '../../protocols/model/payload.js';
import { groupedFields, subgraphSetting } from '../segment/graph-settings.js';
import type { SegmentHandle } from '../segment/handle.js';
import type { SubgraphSetting, VectorPlan } from '../segment/layout.js';
import type { BuildJob } from '../threads/messages.js';
import type { BuildControl } from './control.js';
import { reservedSubgraphs } from './link-subgraphs.js';
import type { PayloadSource } from './payload-source.js';
import type { Selection } from './select-rows.js';
import { frequentValues, type PlacedValue, placeValues, tenantOf, ValueCollector, type ValueRows } from './value-rows.js';

export interface Grouping {
  /** Number of each row's tenant, u32 [rows]; null: no field is the tenant. */
  readonly tenants: Uint32Array | null;
  /** By the vector's name, for vectors that get sub-graphs. */
  readonly subgraphs: ReadonlyMap<string, { readonly setting: SubgraphSetting; readonly values: readonly ValueRows[] }>;
}

const ROWS_PER_CHECK = 4096;

/** Reads the payloads of all rows, but only where it matters how they go together. */
export async function groupRows(
  job: BuildJob,
  selection: Selection,
  openPayloads: (job: BuildJob) => PayloadSource,
  control: BuildControl,
): Promise<Grouping> {
  const settings = job.withGraph && selection.rows > 0 ? settingsOf(job) : [];
  const fields = groupedFields(job.fields).filter(([, { params }]) => settings.length > 0 || params?.is_tenant === true);
  const collector = new ValueCollector(fields);
  if (fields.length > 0) await collect(collector, job, selection, openPayloads, control);
  const withValues = ([name, setting]: readonly [string, SubgraphSetting]) =>
    [name, { setting, values: isWalked(job.spec.config, name) ? frequentValues(collector.fields, setting.rowsMin) : [] }] as const;
  return { tenants: tenantOf(collector.fields, selection.rows), subgraphs: new Map(settings.map(withValues)) };
}

/** Cosine of bytes divides lengths out while it scans all rows: such a vector gets an empty graph, so that it counts as indexed. */
export function isWalked(config: CollectionConfig, vector: string): boolean {
  const params = vectorsByName(config.params.vectors).get(vector);
  return !(params?.datatype === 'uint8' && params.distance === 'Cosine');
}

/** Plans with room for sub-graphs in `layersMax` layers, and the values that have a place there, by vector. */
export function withSubgraphs(
  plans: readonly VectorPlan[],
  { subgraphs }: Grouping,
  rows: number,
  layersMax: number,
): { plans: VectorPlan[]; placed: ReadonlyMap<string, readonly PlacedValue[]> } {
  const placed = new Map<string, readonly PlacedValue[]>();
  const planned = plans.map((plan) => {
    const wanted = subgraphs.get(plan.name);
    if (wanted === undefined) return plan;
    const values = placeValues(wanted.values, rows, layersMax);
    placed.set(plan.name, values);
    return { ...plan, subgraphs: reservedSubgraphs(wanted.setting, values) };
  });
  return { plans: planned, placed };
}

function settingsOf({ spec: { config }, fields }: BuildJob): [string, SubgraphSetting][] {
  return [...vectorsByName(config.params.vectors).keys()].flatMap((name): [string, SubgraphSetting][] => {
    const setting = subgraphSetting(config, name, fields);
    return setting === null ? [] : [[name, setting]];
  });
}

async function collect(
  collector: ValueCollector,
  job: BuildJob,
  { rows, sourceOf, sourceRowOf }: Selection,
  openPayloads: (job: BuildJob) => PayloadSource,
  control: BuildControl,
): Promise<void> {
  const payloads = openPayloads(job);
  try {
    for (let row = 0; row < rows; row++) {
      if (row % ROWS_PER_CHECK === 0) {
        control.progress('grouping rows', row, rows);
        await control.checkpoint();
      }
      const text = payloads.text(job.sources[sourceOf[row] as number] as SegmentHandle, sourceRowOf[row] as number);
      if (text.length > 2) collector.add(row, parseValues(text) as Payload);
    }
  } finally {
    await payloads.close();
  }
}

/** What is measured with one data set after the other. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Dataset } from './dataset.js';
import { type Helper, startHelper } from './helper.js';
import type { BaselineData, ToBaseline, ToLoad, Truth } from './jobs.js';

export interface SetHelpers {
  readonly load: Helper<ToLoad>;
  readonly baseline: Helper<ToBaseline>;
}

/** measure: gets a folder of the data set's own. */
export async function measureEachSet<Figures>(
  datasets: readonly Dataset[],
  folder: string,
  measure: (dataset: Dataset, own: string, helpers: SetHelpers) => Promise<readonly Figures[]>,
): Promise<Figures[]> {
  const figures: Figures[] = [];
  const helpers = { load: startHelper<ToLoad>('load'), baseline: startHelper<ToBaseline>('baseline') };
  try {
    for (const dataset of datasets) {
      const own = join(folder, `${dataset.name}-${dataset.dim}`);
      mkdirSync(own);
      figures.push(...(await measure(dataset, own, helpers)));
    }
  } finally {
    helpers.load.end();
    helpers.baseline.end();
  }
  return figures;
}

/** The exact answers among the points that pass a filter, by its name; null: among all. */
export function exactAnswers(
  { filters, payloads }: Dataset,
  data: BaselineData,
  filterName: string | null,
  k: number,
  baseline: Helper<ToBaseline>,
): Promise<Truth> {
  const filter = filters.find(({ name }) => name === filterName);
  const rows = filter === undefined ? null : Uint32Array.from(payloads.flatMap((payload, row) => (filter.matches(payload) ? [row] : [])));
  return baseline.run<Truth>({ kind: 'truth', data, rows, k });
}

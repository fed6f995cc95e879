/** The files that tell a peer what to keep and to find. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Dataset } from '../common/dataset.js';
import type { BaselineData } from '../common/jobs.js';

export const SET_FILE = 'set.json';
export const PAYLOADS_FILE = 'payloads.json';

/** What is in `SET_FILE`; `PAYLOADS_FILE` is a list of payloads. */
export interface DescribedSet {
  readonly dim: number;
  readonly isCosine: boolean;
  /** Results of a search. */
  readonly k: number;
  /** Float32; rows have length 1 where distances are cosines. */
  readonly vectorsFile: string;
  readonly queriesFile: string;
  /** As the API takes them, by their names. */
  readonly filters: Readonly<Record<string, unknown>>;
}

/** k: results of a search. */
export function writeSet(
  { dim, distance, filters, payloads }: Dataset,
  { queriesFile, vectorsFile }: BaselineData,
  k: number,
  folder: string,
): void {
  const described: DescribedSet = {
    ...{ dim, vectorsFile, queriesFile },
    isCosine: distance === 'Cosine',
    k,
    filters: Object.fromEntries(filters.map(({ filter, name }) => [name, filter])),
  };
  writeFileSync(join(folder, SET_FILE), JSON.stringify(described));
  writeFileSync(join(folder, PAYLOADS_FILE), JSON.stringify(payloads));
}

/** Brings decoded updates to the form they are stored in: vectors compared by cosine have length 1. */

import { type VectorsConfig, vectorsByName } from '../../protocols/model/collection.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import { normalizeRows } from '../../vectors/normalize.js';

/** Normalizes, in place, the cosine vectors of operations, each of a multivector for itself. Those of bytes stay: their components are whole numbers. */
export function normalizeUpdates(operations: readonly UpdateOperation[], vectors: VectorsConfig): void {
  const configured = vectorsByName(vectors);
  for (const operation of operations) {
    if (!('batch' in operation)) continue;
    for (const column of operation.batch.vectors) {
      const params = configured.get(column.name);
      if (column.kind !== 'sparse' && params?.distance === 'Cosine' && params.datatype !== 'uint8')
        normalizeRows(column.values, column.dim);
    }
  }
}

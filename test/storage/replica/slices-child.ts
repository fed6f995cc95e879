/** The process that `slices.test.ts` kills in the middle of an operation, or gives a small heap. */

import type { UpdateOperation } from '../../../protocols/model/update.js';
import { applyTo, configOf, filterOn, logTo, Replica, specOf } from './support.js';

const [, , what, folder] = process.argv as [string, string, string, string];

const logged = (operation: UpdateOperation) => ({ operation, chained: false });
const setAll: UpdateOperation = { kind: 'setPayload', selector: filterOn('n', 0), payload: { n: 1 }, key: null };

/** Logs an operation, or finds one that is not done, and says each of its slices, until the process is ended. */
async function slices(): Promise<void> {
  const replica = await Replica.open(specOf(folder), null, () => {
    process.stdout.write('slice\n');
    let asked = 0;
    return () => ++asked > 5;
  });
  logTo(replica.store, [logged(setAll)]);
  for (const _ of replica.store.operations.applying()) await new Promise((resolve) => setImmediate(resolve));
  process.stdout.write('done\n');
}

/** Changes more points by one operation than the heap has room for an object each. */
async function heap(): Promise<void> {
  const count = 120_000;
  const replica = await Replica.open(specOf(folder, configOf({ size: 1, distance: 'Dot' })));
  for (let from = 0; from < count; from += 5000) {
    const ids = Array.from({ length: 5000 }, (_, at) => from + at);
    const vectors = [{ kind: 'dense' as const, name: '', dim: 1, points: null, values: new Float32Array(5000) }];
    applyTo(replica.store, [logged({ kind: 'upsert', batch: { ids, vectors, payloads: ids.map(() => ({ n: 0 })) } })]);
  }
  applyTo(replica.store, [logged(setAll)]);
  const digest = replica.store.copies.digest(null);
  process.stdout.write(`changed ${digest.points.reduce((sum, points) => sum + points, 0)} points\n`);
  await replica.close();
}

const RUNS: Record<string, () => Promise<void>> = { slices, heap };
await RUNS[what]?.();

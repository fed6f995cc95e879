/** The process that `crash.test.ts` ends in the middle, or lets run out of disk. */

import { TroupeError } from '../../../protocols/errors.js';
import type { UpdateOperation } from '../../../protocols/model/update.js';
import { applyTo, byIds, logTo, Replica, specOf, upsert } from './support.js';

const [, , what, folder] = process.argv as [string, string, string, string];

const logged = (operation: UpdateOperation) => ({ operation, chained: false });

async function logAndWait(): Promise<void> {
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  const numbers = logTo(replica.store, [
    logged(
      upsert([
        { id: 2, seed: 2 },
        { id: 3, seed: 3 },
      ]),
    ),
    logged(upsert([{ id: 2, seed: 20, payload: { n: 1 } }])),
    logged({ kind: 'deletePoints', selector: byIds(1) }),
  ]);
  process.stdout.write(`logged ${numbers.join(' ')}\n`);
  setInterval(() => {}, 1000);
}

/** Writes without a leader, some operations logged first and applied with the next one, and says each number that is on disk, until the end. */
async function writeAlone(): Promise<void> {
  const { store } = await Replica.open(specOf(folder));
  for (let index = store.log.position.last.index + 1; ; index++) {
    const point = upsert([{ id: index, seed: index, payload: { text: 'x'.repeat(index % 3 === 0 ? 100_000 : 5) } }]);
    if (index % 4 === 0) logTo(store, [logged(point)]);
    else applyTo(store, [logged(point)]);
    process.stdout.write(`${index}\n`);
  }
}

/** Writes until the disk refuses, then a little that fits in freed pages. */
async function fillDisk(): Promise<void> {
  process.on('SIGXFSZ', () => {});
  const replica = await Replica.open(specOf(folder));
  let written = 0;
  let refused = 0;
  let code = '';
  for (let id = 0; refused < 3; id++) {
    try {
      replica.apply(upsert([{ id, seed: id, payload: { text: 'x'.repeat(60_000) } }]));
      written++;
    } catch (error) {
      refused++;
      if (error instanceof TroupeError) code = error.code;
    }
  }
  const points = replica.points().size;
  const [small] = replica.apply({ kind: 'deletePoints', selector: byIds(999_999) });
  process.stdout.write(JSON.stringify({ written, refused, code, points, small: small?.error === null }));
  await replica.close();
}

/** Writes as the leader of a term, some operations large, and says each index that is on disk, until the process is ended. */
async function lead(term: number): Promise<void> {
  const { store } = await Replica.open(specOf(folder));
  const by = { peer: term * 10, term };
  for (let index = Math.max(store.log.position.last.index, term * 1000) + 1; ; index++) {
    const operation = upsert([{ id: index % 50, seed: index, payload: { text: 'x'.repeat(index % 3 === 0 ? 100_000 : 5) } }]);
    // Hangs on an operation that fails.
    const failing: UpdateOperation = { kind: 'clearPayload', selector: byIds(777) };
    const numbered = [
      { operation: index, by, logged: logged(operation) },
      { operation: index + 1, by, logged: logged(failing) },
      { operation: index + 2, by, logged: { operation: upsert([{ id: 888, seed: 1 }]), chained: true } },
    ];
    index += 2;
    if (index % 2 === 0) store.operations.log(numbered);
    else store.operations.apply(numbered);
    process.stdout.write(`${index}\n`);
  }
}

/** A leader's writes until the disk refuses; then one that takes over what it could not log. */
async function leadToTheEnd(): Promise<void> {
  process.on('SIGXFSZ', () => {});
  const { store } = await Replica.open(specOf(folder));
  const by = { peer: 10, term: 1 };
  const write = (id: number, bytes: number): boolean => {
    const operation = store.log.position.last.index + 1;
    const point = upsert([{ id, seed: id, payload: { text: 'x'.repeat(bytes) } }]);
    try {
      store.operations.apply([{ operation, by, logged: logged(point) }]);
      return true;
    } catch (error) {
      if (error instanceof TroupeError && error.code === 'storage') return false;
      throw error;
    }
  };
  let written = 0;
  while (write(written, 60_000)) written++;
  const { last } = store.log.position;
  const entries = store.log.entriesAfter({ peer: 0, term: 0, index: 0 }, Number.MAX_SAFE_INTEGER);
  const digest = store.copies.digest(null);
  const points = digest.points.reduce((sum, count) => sum + count, 0);
  process.stdout.write(JSON.stringify({ written, last, entries: entries.kind === 'entries' ? entries.entries.length : 0, points }));
  await store.close();
}

const RUNS: Record<string, () => Promise<void>> = {
  log: logAndWait,
  fill: fillDisk,
  alone: writeAlone,
  lead: () => lead(Number(process.argv[4])),
  leadToTheEnd,
};
await RUNS[what]?.();

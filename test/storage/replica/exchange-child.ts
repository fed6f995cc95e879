/** The process of `exchange.test.ts`: a replica that takes each line as a step, and answers it with a line of JSON. */

import { createInterface } from 'node:readline';
import { LmdbError } from '../../../storage/disk/lmdb-tables.js';
import { addFreePages, FREED_RECORDS } from './free-pages.js';
import { Replica, specOf, upsert } from './support.js';

const [, , folder] = process.argv as [string, string, string];

let opened: Replica | null = null;

function isOpen(): Replica {
  if (opened === null) throw new Error('the replica is not open');
  return opened;
}

const STEPS: Record<string, (argument: number) => unknown> = {
  open: async () => {
    opened = await Replica.open(specOf(folder));
  },
  close: async () => {
    await opened?.close();
    opened = null;
  },
  /** Ids of all points, as a reader sees them that has had the file open before. */
  read: () => [...isOpen().points().values()].map(({ payload }) => Number(payload.id)).sort((a, b) => a - b),
  write: (id) => isOpen().apply(upsert([{ id, seed: id, payload: { id } }])).length,
  free: () => addFreePages(isOpen(), FREED_RECORDS),
  copy: async () => (await isOpen().store.file.look()) || (await isOpen().store.file.look()),
  take: () => isOpen().store.takeSmallerFile(),
  warnings: () => isOpen().warnings.length,
};

const say = (answer: object): boolean => process.stdout.write(`${JSON.stringify(answer)}\n`);

for await (const line of createInterface(process.stdin)) {
  const [step, argument] = line.split(' ') as [string, string | undefined];
  try {
    say({ value: (await STEPS[step]?.(Number(argument))) ?? null });
  } catch (error) {
    say({ error: String(error), isFatal: error instanceof LmdbError && error.fatal });
  }
}

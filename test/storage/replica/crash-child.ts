/** The process that `crash.test.ts` ends in the middle, or lets run out of disk. */

import { TroupeError } from '../../../protocols/errors.js';
import type { UpdateOperation } from '../../../protocols/model/update.js';
import { byIds, Replica, specOf, upsert } from './support.js';

const [, , what, folder] = process.argv as [string, string, string, string];

const logged = (operation: UpdateOperation) => ({ operation, chained: false });

async function logAndWait(): Promise<void> {
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  const numbers = replica.store.log([
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

/** Writes until the disk refuses, then a little that fits in freed pages. */
async function fillDisk(): Promise<void> {
  process.on('SIGXFSZ', () => {});
  const replica = await Replica.open(specOf(folder));
  let written = 0;
  let refused = 0;
  let code = '';
  for (let id = 0; refused < 3; id++) {
    const [outcome] = replica.apply(upsert([{ id, seed: id, payload: { text: 'x'.repeat(60_000) } }]));
    if (outcome?.error === null) written++;
    else {
      refused++;
      if (outcome?.error instanceof TroupeError) code = outcome.error.code;
    }
  }
  const points = replica.points().size;
  const [small] = replica.apply({ kind: 'deletePoints', selector: byIds(999_999) });
  process.stdout.write(JSON.stringify({ written, refused, code, points, small: small?.error === null }));
  await replica.close();
}

await (what === 'log' ? logAndWait() : fillDisk());

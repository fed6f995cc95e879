/**
 * A process without free file descriptors that has a replica's file checked, for `verify-lmdb.test.ts`. Its argument is the replica's folder.
 * Prints the error's facts, and then the verdict when descriptors are free.
 */

import { closeSync } from 'node:fs';
import { errorFacts } from '../../../protocols/errors.js';
import { verifyReplicas } from '../../../storage/verify/verify-lmdb.js';
import { takeDescriptors } from '../../machine.js';

const [folder = ''] = process.argv.slice(2);
const held = takeDescriptors();
const refused = await verifyReplicas([folder]).then(
  (verdicts) => ({ verdict: verdicts.get(folder) }),
  (error: unknown) => errorFacts(error),
);
for (const descriptor of held) closeSync(descriptor);
const verdict = (await verifyReplicas([folder])).get(folder);
process.stdout.write(JSON.stringify({ refused, verdict }));

/**
 * A process that has a replica's file checked where something is lacking, for `verify-lmdb.test.ts`. Its arguments are the replica's folder, and
 * `descriptors` if it is to have none of them. Prints the error's facts or the verdict; then in another line, for descriptors, the verdict when
 * they are free.
 */

import { closeSync } from 'node:fs';
import { errorFacts } from '../../../protocols/errors.js';
import { verifyReplicas } from '../../../storage/verify/verify-lmdb.js';
import { takeDescriptors } from '../../machine.js';

const [folder = '', lack] = process.argv.slice(2);
const held = lack === 'descriptors' ? takeDescriptors() : [];
const judge = () =>
  verifyReplicas([folder]).then(
    (verdicts) => ({ verdict: verdicts.get(folder) }),
    (error: unknown) => errorFacts(error),
  );
console.log(JSON.stringify(await judge()));
for (const descriptor of held) closeSync(descriptor);
if (lack === 'descriptors') console.log(JSON.stringify(await judge()));

/**
 * Writes entries to a consensus log one after the other, several under way, and prints the index of each that is on disk.
 * Arguments: storage folder, bytes of an entry. When a write is refused it prints `refused <how many more were>`, loads
 * again, prints `loaded <last index>` and ends.
 */

import { NO_WRITE } from '../../../protocols/model/consensus.js';
import { ConsensusLog } from '../../../storage/consensus-log/log.js';
import { verifyConsensus } from '../../../storage/verify/verify-lmdb.js';
import { operation } from './support.js';

const UNDER_WAY = 4;

const [folder = '', bytes = '100'] = process.argv.slice(2);
const log = new ConsensusLog(folder, verifyConsensus);
const stored = await log.load();
let next = (stored.entries.at(-1)?.index ?? 0) + 1;
let refused = 0;

async function writeOn(): Promise<void> {
  while (refused === 0) {
    const index = next++;
    try {
      await log.write({ ...NO_WRITE, entries: [operation(index, 1, Number(bytes))], hardState: { term: 1, votedFor: 1, commit: index } });
      process.stdout.write(`${index}\n`);
    } catch {
      refused++;
    }
  }
}

await Promise.all(Array.from({ length: UNDER_WAY }, writeOn));
const later = await log.write({ ...NO_WRITE, entries: [operation(next, 1, 1)] }).then(
  () => 0,
  () => 1,
);
process.stdout.write(`refused ${refused + later}\n`);
const reloaded = await log.load();
process.stdout.write(`loaded ${reloaded.entries.at(-1)?.index ?? 0}\n`);
await log.close();

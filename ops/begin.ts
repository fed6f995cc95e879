/**
 * Entry of the bundle. The first reader is what a start waits for longest, so its thread begins at once and loads its program while the main
 * thread loads the server.
 */

import { canSharePort } from '../http/context/share-port.js';
import { heapMegabytes, memoryBudget } from '../storage/memory/budget.js';
import { tightestLimit } from '../storage/memory/limits.js';
import { readMemoryLimits } from '../storage/memory/read-limits.js';
import { beginThread } from '../storage/pool/early-thread.js';
import { readerWithServers } from './reader-entry.js';

/** Words with which the program prints something and ends. */
const PRINTS = ['--help', '-h', '--version', '-V', 'verify'];

// Where settings want no servers in readers, this thread is not taken.
if (canSharePort() && !process.argv.some((argument) => PRINTS.includes(argument))) {
  const budget = memoryBudget(tightestLimit(readMemoryLimits()).bytes, null);
  beginThread(readerWithServers(), 'reader-0', heapMegabytes(budget, 'reader'));
}
void import('./main.js');

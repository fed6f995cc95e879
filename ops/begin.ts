/**
 * Entry of the bundle. The first reader is what a start on an empty folder waits for longest, and the first writer what one with data in place does. So their threads begin at
 * once and load their programs while the main thread loads the server.
 */

import { hasCollections } from '../actors/collection/collections-folder.js';
import { canSharePort } from '../http/context/share-port.js';
import { heapMegabytes, memoryBudget } from '../storage/memory/budget.js';
import { tightestLimit } from '../storage/memory/limits.js';
import { readMemoryLimits } from '../storage/memory/read-limits.js';
import { beginThread } from '../storage/pool/early-thread.js';
import { threadEntry } from '../storage/threads/entries.js';
import { readerWithServers } from './reader-entry.js';
import { toolName } from './tool-names.js';

/** Words with which the program prints something and ends. */
const PRINTS = ['--help', '-h', '--version', '-V', 'verify'];
/** Where no setting says otherwise. */
const STORAGE_PATH = './storage';
const tool = toolName(process.argv[2]);

// Where settings want no servers in readers, this thread is not taken.
if (canSharePort() && tool === null && !process.argv.some((argument) => PRINTS.includes(argument))) {
  // A file may say otherwise; a thread whose heap would be too large for that is not taken either.
  const setting = Number(process.env.SERVICE__STORAGE__PERFORMANCE__MEMORY_BUDGET_MB ?? Number.NaN);
  const budget = memoryBudget(tightestLimit(readMemoryLimits()).bytes, setting > 0 ? setting : null);
  // Where the folder of another setting is meant, the thread waits until it is needed.
  if (hasCollections(process.env.SERVICE__STORAGE__STORAGE_PATH ?? STORAGE_PATH))
    beginThread(threadEntry('writer'), 'writer-0', heapMegabytes(budget, 'writer'), true);
  beginThread(readerWithServers(), 'reader-0', heapMegabytes(budget, 'reader'));
}
if (tool === null) void import('./main.js');
// The server is not needed for one.
else
  void import('./tools/run.js')
    .then(({ runTool }) => runTool(tool, process.argv.slice(3)))
    .then((exitCode) => {
      process.exitCode = exitCode;
    });

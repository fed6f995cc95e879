/**
 * Entry of the bundle. What a start waits for longest is the first reader, or the first writer where there are collections to open. So that thread begins at once
 * and loads its program while the main thread loads the server. One alone: with three threads on two CPUs the main thread, which all wait for, took longer for its part.
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

// Where settings want no servers in readers, a reader of this program is not taken.
if (canSharePort() && tool === null && !process.argv.some((argument) => PRINTS.includes(argument))) {
  // A file may say otherwise; a thread whose heap would be too large for that is not taken either.
  const setting = Number(process.env.SERVICE__STORAGE__PERFORMANCE__MEMORY_BUDGET_MB ?? Number.NaN);
  const budget = memoryBudget(tightestLimit(readMemoryLimits()).bytes, setting > 0 ? setting : null);
  // Where another setting names the folder, the thread waits until it is needed.
  if (hasCollections(process.env.SERVICE__STORAGE__STORAGE_PATH ?? STORAGE_PATH))
    beginThread(threadEntry('writer'), 'writer-0', heapMegabytes(budget, 'writer'), true);
  else beginThread(readerWithServers(), 'reader-0', heapMegabytes(budget, 'reader'));
}
if (tool === null) void import('./main.js');
// The server is not needed for one.
else
  void import('./tools/run.js')
    .then(({ runTool }) => runTool(tool, process.argv.slice(3)))
    .then((exitCode) => {
      process.exitCode = exitCode;
    });

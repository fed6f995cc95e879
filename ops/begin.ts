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
import { toolName } from './tool-names.js';

/** Words with which the program prints something and ends. */
const PRINTS = ['--help', '-h', '--version', '-V', 'verify'];
const tool = toolName(process.argv[2]);

// Where settings want no servers in readers, this thread is not taken.
if (canSharePort() && tool === null && !process.argv.some((argument) => PRINTS.includes(argument))) {
  // A file may say otherwise; a thread whose heap would be too large for that is not taken either.
  const setting = Number(process.env.SERVICE__STORAGE__PERFORMANCE__MEMORY_BUDGET_MB ?? Number.NaN);
  const budget = memoryBudget(tightestLimit(readMemoryLimits()).bytes, setting > 0 ? setting : null);
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

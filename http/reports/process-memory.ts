/** What this process uses of the memory, for the reports. */

import { v8 } from '../../protocols/late-modules.js';

/** Bytes. rss: undefined where the system does not tell it, as while no descriptor is left to ask with. */
export interface ProcessMemory {
  readonly rss: number | undefined;
  readonly heapUsed: number;
  readonly heapTotal: number;
  readonly external: number;
}

export function processMemory(): ProcessMemory {
  try {
    return process.memoryUsage();
  } catch {
    const { external_memory, total_heap_size, used_heap_size } = v8().getHeapStatistics();
    return { rss: undefined, heapUsed: used_heap_size, heapTotal: total_heap_size, external: external_memory };
  }
}

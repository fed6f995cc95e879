/** How a node did under a fault, told from what is known of it. Decisions only. */

import type { Exit } from '../../../ops/node-process.js';
import type { Counts, FaultPlan } from './kinds.js';
import type { Tally } from './workload.js';

/** From the best on. */
export const ENDINGS = [
  'no call failed',
  'all acknowledged',
  'some refused',
  'ended in order',
  'ended by its runtime',
  // A disk that fails can do that, too.
  'ended within lmdb by a page',
  // Only injection can: the node has tried the same just before.
  'ended within lmdb by an opening',
] as const;
export type Ending = (typeof ENDINGS)[number];

export interface RunReport {
  readonly ending: Ending;
  /** Calls that failed, as the library in the node wrote them down. */
  readonly failed: readonly string[];
  /** Null: the node lived on. */
  readonly exit: Exit | null;
  /** After the faults the node takes no write before it is started again. */
  readonly stuck: string | null;
  /** What must not be; empty when all is well. */
  readonly findings: readonly string[];
  readonly tally: Tally;
  /** Of all calls, where they were counted. */
  readonly counts: Counts;
}

/** What fails in one run. */
export interface Fault {
  /** Null: calls are counted. */
  readonly plan: FaultPlan | null;
  readonly runtimeMayEnd: boolean;
  /** How long changes are waited for under it; as long as builds may fail where it is left out. */
  readonly waitSec?: number;
}

/** Codes of an end in order: see ops/README.md. 127 is the dynamic linker's. */
export const EXIT_CODES = [0, 1, 3, 4];
/** Of a start: Node.js ends with these before any program of ours runs, and the dynamic linker with 127. */
export const START_CODES = [...EXIT_CODES, 7, 12, 13, 127];
/** How native code ends a process. */
const CRASHES = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV', 'SIGBUS'];
/**
 * Calls after whose failure lmdb's native code may end the process. Of a page's write, because it tells of the error in 100 bytes, and the text
 * may be longer (`last_error` in `mdb_page_flush` of lmdb 3.5.6). Of `open`, because it uses then what it has freed (`openEnv` in `env.cpp`):
 * descriptors and addresses are tried before (Room-R1), so that nothing is lacking there but by a failure of exactly this call.
 */
const LMDB_PAGE_FAILS = /(pwrite64|writev)\(.*\/lmdb\/data\.mdb/;
const LMDB_OPEN_FAILS = /(openat|mmap)\(.*\/lmdb\/(data|lock)\.mdb/;

export interface Outcome extends Pick<RunReport, 'exit' | 'failed' | 'stuck' | 'tally' | 'counts'> {
  readonly fault: Fault;
  /** Node.js waits for ever for a thread of its own that it could not start, before any program begins: it had to be ended. */
  readonly neverBegan?: boolean;
}

/** codes: of an end in order. earlier: of faults of the same process. Memory that lmdb has overrun may end it much later. */
export function reportOf(outcome: Outcome, codes: readonly number[], earlier: readonly RunReport[] = []): RunReport {
  const { counts, exit, failed, fault, stuck, tally } = outcome;
  const earlierFailed = earlier.flatMap((report) => report.failed);
  const findings = [...tally.findings];
  const ending =
    fault.runtimeMayEnd && outcome.neverBegan === true
      ? 'ended by its runtime'
      : endingOf(exit, failed, tally, fault.runtimeMayEnd, [...earlierFailed, ...failed]);
  if (exit !== null && ending === 'ended in order' && !codes.includes(exit.code ?? -1))
    findings.push(`the node ended with ${JSON.stringify(exit)}`);
  return { ending, failed, exit, stuck, findings, tally, counts };
}

/** The report of a fault after which the node seemed to live on, and which has ended it yet; null: it has not, or this end is a finding. */
export function lateEnd(reports: readonly RunReport[], exit: Exit | null): RunReport | null {
  const last = reports.at(-1);
  if (last === undefined || exit === null || !hasCrashed(exit)) return null;
  const isByPage = reports.some(({ failed }) => failed.some((line) => LMDB_PAGE_FAILS.test(line)));
  return isByPage ? { ...last, exit, ending: 'ended within lmdb by a page' } : null;
}

function hasCrashed({ signal }: Exit): boolean {
  return signal !== null && CRASHES.includes(signal);
}

function endingOf(
  exit: Exit | null,
  failed: readonly string[],
  tally: Tally,
  runtimeMayEnd: boolean,
  failedInAll: readonly string[],
): Ending {
  if (exit !== null && hasCrashed(exit)) {
    if (runtimeMayEnd) return 'ended by its runtime';
    if (failedInAll.some((line) => LMDB_PAGE_FAILS.test(line))) return 'ended within lmdb by a page';
    if (failed.some((line) => LMDB_OPEN_FAILS.test(line))) return 'ended within lmdb by an opening';
  }
  if (exit !== null && exit.code !== 0) return 'ended in order';
  if (failed.length === 0) return 'no call failed';
  return tally.refused + tally.unknown > 0 ? 'some refused' : 'all acknowledged';
}

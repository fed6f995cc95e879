/** Which points this node brings to other shards: those of the shards that it leads, as long as that stands in the agreed state. */

import { type MigrationTask, migrationOf, migrationTasks } from '../../cluster/apply/migration.js';
import { errorFacts } from '../../protocols/errors.js';
import type { Cancel, Log } from '../runtime/ports.js';
import { type CopyMemory, Mover, type MoverParts } from './mover.js';

export interface ReshardingParts extends MoverParts {
  readonly log: Pick<Log, 'info' | 'warn'>;
}

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 5000;

/** Until it is cancelled. */
export function runResharding(parts: ReshardingParts): Cancel {
  const { assignments } = parts.routes;
  const running = new Map<string, { readonly duty: MigrationTask; over: boolean }>();
  const memories = new Map<string, CopyMemory>();
  const look = (): void => {
    const { agreed, peerId } = assignments;
    const duties = new Map((agreed === null ? [] : migrationTasks(agreed, peerId)).map((duty) => [duty.name, duty]));
    for (const [name, run] of running) {
      if (duties.has(name)) continue;
      run.over = true;
      running.delete(name);
      parts.show(run.duty, null);
    }
    if (duties.size === 0 && ![...(agreed?.collections.values() ?? [])].some((record) => migrationOf(record) !== null)) memories.clear();
    for (const [name, duty] of duties) {
      if (running.has(name)) continue;
      const run = { duty, over: false };
      running.set(name, run);
      void carryOut(parts, duty, memories, run);
    }
  };
  look();
  const cancel = assignments.watchAll(look);
  return () => {
    cancel();
    for (const run of running.values()) run.over = true;
  };
}

/** Again and again until it is done, or over. */
async function carryOut(
  parts: ReshardingParts,
  duty: MigrationTask,
  memories: Map<string, CopyMemory>,
  run: { over: boolean },
): Promise<void> {
  const name = `${duty.uid}-${duty.startedAt}-${duty.shardId}-${duty.term}`;
  const memory = memories.get(name) ?? { floor: -1, sequence: 0 };
  memories.set(name, memory);
  const mover = new Mover(parts, duty, memory, () => run.over);
  const what = `${duty.stage} points of shard ${duty.shardId} of ${duty.collection}`;
  for (let pauseMs = RETRY_MIN_MS; !run.over; pauseMs = Math.min(RETRY_MAX_MS, pauseMs * 2)) {
    try {
      await mover.run();
      return;
    } catch (error) {
      if (run.over) return;
      mover.failed(error);
      parts.log.warn(`${what} to other shards failed: ${errorFacts(error).detail}`);
    }
    await parts.routes.pause(pauseMs);
  }
}

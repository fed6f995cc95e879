/** Which parts of resharding this node does: those of the shards that it leads, as long as they stand in the agreed state. */

import { type ReshardingDuty, reshardingDuties } from '../../cluster/resharding.js';
import { errorFacts } from '../../protocols/errors.js';
import type { Cancel, Log } from '../runtime/ports.js';
import { Mover, type MoverParts } from './mover.js';

export interface ReshardingParts extends MoverParts {
  readonly log: Pick<Log, 'info' | 'warn'>;
}

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 5000;

/** Until it is cancelled. */
export function runResharding(parts: ReshardingParts): Cancel {
  const { assignments } = parts.routes;
  const running = new Map<string, { over: boolean }>();
  const floors = new Map<string, number>();
  const look = (): void => {
    const { agreed, peerId } = assignments;
    const duties = new Map((agreed === null ? [] : reshardingDuties(agreed, peerId)).map((duty) => [duty.name, duty]));
    for (const [name, run] of running) {
      if (duties.has(name)) continue;
      run.over = true;
      running.delete(name);
    }
    if (duties.size === 0 && ![...(agreed?.collections.values() ?? [])].some(({ resharding }) => resharding !== null)) floors.clear();
    for (const [name, duty] of duties) {
      if (running.has(name)) continue;
      const run = { over: false };
      running.set(name, run);
      void carryOut(parts, duty, floors, run);
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
async function carryOut(parts: ReshardingParts, duty: ReshardingDuty, floors: Map<string, number>, run: { over: boolean }): Promise<void> {
  const what = `${duty.stage} of shard ${duty.shardId} of ${duty.collection}`;
  for (let pauseMs = RETRY_MIN_MS; !run.over; pauseMs = Math.min(RETRY_MAX_MS, pauseMs * 2)) {
    try {
      await new Mover(parts, duty, floors, () => run.over).run();
      return;
    } catch (error) {
      if (run.over) return;
      parts.log.warn(`${what} for resharding failed: ${errorFacts(error).detail}`);
    }
    await parts.routes.pause(pauseMs);
  }
}

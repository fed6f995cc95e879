/** Without a watch, a thread that never answers holds up every agreement of the node, and telemetry shows nothing of it. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ConsensusLog } from '../../../storage/consensus-log/log.js';
import { LOOK_EVERY_MS } from '../../../storage/pool/thread-watch.js';
import type { WorkerEvent } from '../../../storage/pool/worker-slots.js';
import { temporaryFolder } from '../replica/support.js';
import { operations, writeOf } from './support.js';

/** Looks until the thread is ended. */
const LOOKS = 4;

test('a keeper of the consensus log that hangs is named, does not count as up, and is ended; the log goes on with another one', {
  timeout: 60_000,
}, async (t) => {
  const folder = temporaryFolder(t);
  const log = new ConsensusLog(folder, async () => null, LOOKS * LOOK_EVERY_MS, new URL('./hanging-keeper.js', import.meta.url));
  t.after(() => log.close());
  const events: WorkerEvent[] = [];
  const look = (): void => log.look((event) => events.push(event));

  await log.load();
  look();
  assert.equal(log.depth(0)?.up, true);
  const refused = assert.rejects(log.write(writeOf({ entries: operations(1, 2) })), /the thread that keeps the consensus log is gone/);
  while (!existsSync(path.join(folder, 'hangs'))) await setImmediate();

  while (log.depth(0)?.stuck == null) look();
  assert.deepEqual([log.depth(0)?.up, log.depth(0)?.depth], [false, 1]);
  assert.match(log.depth(0)?.stuck?.call ?? '', /^write of the consensus log$/);
  for (let looks = 1; looks < LOOKS; looks++) look();
  await refused;
  assert.deepEqual(
    events.map(({ event, kind, name }) => [event, kind, name]),
    [['silent', 'keeper', 'consensus-log']],
  );

  await log.load();
  await log.write(writeOf({ entries: operations(1, 2) }));
  const depth = log.depth(0);
  assert.deepEqual([depth?.up, depth?.stuck, depth?.restarts], [true, null, 1]);
});

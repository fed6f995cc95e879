/** Without a watch, a thread that never answers holds up every snapshot and backup of the node, and telemetry shows nothing of it. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ArchiveThread } from '../../../storage/archive/archive-thread.js';
import { LOOK_EVERY_MS } from '../../../storage/pool/thread-watch.js';
import type { WorkerEvent } from '../../../storage/pool/worker-slots.js';
import { temporaryFolder } from '../replica/support.js';

/** Looks until the thread is ended. */
const LOOKS = 4;

test('a thread of archives that hangs is named, does not count as up, and is ended; the next work gets another one', {
  timeout: 60_000,
}, async (t) => {
  const file = path.join(temporaryFolder(t), 'hangs');
  const lost: string[] = [];
  const entry = new URL('./hanging-thread.js', import.meta.url);
  const archive = new ArchiveThread({ entry, silenceMs: LOOKS * LOOK_EVERY_MS, onLost: (reason) => lost.push(reason) });
  t.after(() => archive.close());
  const events: WorkerEvent[] = [];
  const look = (): void => archive.look((event) => events.push(event));
  look();
  assert.equal(archive.depth(0), null);

  const refused = assert.rejects(archive.hash(file), { code: 'unavailable', message: /the thread that works on snapshots has ended/ });
  while (!existsSync(file)) await setImmediate();
  while (archive.depth(0)?.stuck == null) look();
  assert.deepEqual([archive.depth(0)?.up, archive.depth(0)?.depth], [false, 1]);
  assert.equal(archive.depth(0)?.stuck?.call, 'hash of an archive');
  for (let looks = 1; looks < LOOKS; looks++) look();
  await refused;
  assert.equal(lost.length, 1);
  assert.deepEqual(
    events.map(({ event, kind, name }) => [event, kind, name]),
    [['silent', 'archive', 'archive']],
  );

  assert.deepEqual(await archive.hash(file), { bytes: 0, sha256: '' });
  const depth = archive.depth(0);
  assert.deepEqual([depth?.up, depth?.stuck, depth?.restarts], [true, null, 1]);
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { MAP_BYTES_MIN } from '../../../storage/disk/lmdb-open.js';
import { noPrlimit, printedBy } from '../../machine.js';
import { temporaryFolder } from '../replica/support.js';
import { keyOf, VALUE_BYTES } from './growing-process.js';

const GROWING = new URL('./growing-process.js', import.meta.url);

test('an environment grows beyond its first map under readers of other threads, which see what was written', async (t) => {
  const folder = path.join(temporaryFolder(t), 'lmdb');
  const environment = Environment.open(folder, () => {});
  t.after(() => environment.close());
  const count = MAP_BYTES_MIN / VALUE_BYTES + 20;
  const readers = [0, 1].map(() => new Worker(GROWING, { workerData: { folder, count } }));
  const seen = readers.map(() => ({ read: 0, wrong: 0, done: false }));
  const ends = readers.map((reader, at) => {
    reader.on('message', (state) => Object.assign(seen[at] as object, state));
    return once(reader, 'exit');
  });
  await Promise.all(readers.map((reader) => once(reader, 'message')));
  for (let number = 0; number < count; number += 4) {
    environment.write(() => {
      for (let at = number; at < number + 4; at++) environment.put('meta', keyOf(at), Buffer.alloc(VALUE_BYTES, at % 256));
    });
    await new Promise(setImmediate);
  }
  await Promise.all(ends);
  assert.ok(count * VALUE_BYTES > MAP_BYTES_MIN);
  for (const { done, read, wrong } of seen)
    assert.deepEqual({ done, wrong, hasRead: read >= count }, { done: true, wrong: 0, hasRead: true });
  // From the map that was there first, and from the one that it has grown to.
  for (const number of [0, count - 1]) assert.equal(environment.get('meta', keyOf(number))?.[0], number % 256);
});

test('a write that would outgrow the map where there are no addresses is refused, and is made when there are', { skip: noPrlimit }, (t) => {
  const folder = path.join(temporaryFolder(t), 'lmdb');
  const [outcomes] = printedBy<[ErrorFacts | null, ...unknown[]]>([process.execPath, fileURLToPath(GROWING), folder]);
  const [refusal, ...rest] = outcomes ?? [null];
  assert.match(refusal?.detail ?? '', /data\.mdb: cannot write: it takes [\d.]+ GiB of addresses/);
  const whole = VALUE_BYTES;
  assert.deepEqual(rest, [[whole, whole, null], null, [whole, whole, whole, whole]]);
});

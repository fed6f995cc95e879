import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { endWithClient } from '../../../http/context/linger.js';

/** What is used of a socket, and what was done to it. */
class FakeSocket extends EventEmitter {
  destroyed = false;
  hasEnded = false;
  bytesRead = 1000;

  end(): void {
    this.hasEnded = true;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

test('a client that goes on sending after its last answer is cut off after 30 seconds or 512 MiB', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const [slow, fast] = [new FakeSocket(), new FakeSocket()];
  for (const socket of [slow, fast]) endWithClient(socket as unknown as Socket);
  assert.deepEqual(
    [slow, fast].map(({ hasEnded }) => hasEnded),
    [true, true],
  );
  slow.bytesRead += 512 << 20;
  fast.bytesRead += (512 << 20) + 1;
  t.mock.timers.tick(29_999);
  assert.deepEqual([slow.destroyed, fast.destroyed], [false, true]);
  t.mock.timers.tick(1);
  assert.equal(slow.destroyed, true);
});

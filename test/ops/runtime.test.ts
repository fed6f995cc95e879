import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeRuntime } from '../../ops/runtime.js';

const said = (started: string | undefined): string => {
  const { level, message, runtime } = describeRuntime(started, 'v26.10.0');
  return `${level}, ${runtime}: ${message}`;
};

test('the log says which Node.js serves, where it came from and why', () => {
  assert.deepEqual(['brought 20019003', 'brought 0', 'chosen 26010000', 'newer 26010000', undefined, 'nonsense'].map(said), [
    'info, brought along: Node.js v26.10.0 serves, brought along by Troupe; v20.19.3 started it',
    'info, brought along: Node.js v26.10.0 serves, brought along by Troupe',
    'info, own: Node.js v26.10.0 serves, which started Troupe (TROUPE_RUNTIME=own)',
    'info, own: Node.js v26.10.0 serves, which started Troupe',
    'info, own: Node.js v26.10.0 serves, started without the `troupe` command',
    'info, own: Node.js v26.10.0 serves, started without the `troupe` command',
  ]);
});

test('an older runtime than the one brought along is a warning, unless somebody asked for it', () => {
  assert.match(said('missing 20019003'), /^warn, own: .*which started Troupe: the newer one is not installed here; `npm install`/);
  assert.match(said('unusable 20019003'), /^warn, own: .*does not run on this machine/);
});

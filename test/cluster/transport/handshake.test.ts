import assert from 'node:assert/strict';
import { test } from 'node:test';
import { channelTarget, hostOf } from '../../../cluster/transport/address.js';
import { backOffMs, commonVersion, judgeHello, takesOver } from '../../../cluster/transport/handshake.js';

const OWN = { peerId: 10, clusterId: 'home', versions: { min: 2, max: 4 } };
const HELLO = { versions: { min: 1, max: 3 }, clusterId: 'home', from: 20, to: 10, session: 7, release: '0.2.0' };

test('two sides speak the highest version that both know', () => {
  assert.deepEqual(judgeHello(OWN, HELLO, null), { kind: 'agreed', version: 3 });
  assert.deepEqual(judgeHello(OWN, HELLO, 20), { kind: 'agreed', version: 3 });
  assert.equal(commonVersion({ min: 1, max: 1 }, { min: 2, max: 5 }), null);
  assert.equal(commonVersion({ min: 2, max: 5 }, { min: 2, max: 2 }), 2);
});

test('a hello of another cluster, peer or version is refused with the reason', () => {
  const reason = (own: Partial<typeof OWN> | { clusterId: null }, hello: Partial<typeof HELLO>, expected: number | null = null) => {
    const judged = judgeHello({ ...OWN, ...own }, { ...HELLO, ...hello }, expected);
    return judged.kind === 'refused' ? judged.reason : null;
  };
  assert.deepEqual(
    [
      reason({}, { clusterId: 'away' }),
      reason({}, { clusterId: '' }),
      reason({ clusterId: null }, {}),
      reason({}, { to: 11 }),
      reason({}, {}, 21),
      reason({}, { from: 10 }),
      reason({}, { versions: { min: 5, max: 6 } }),
      reason({}, { versions: { min: 0, max: 0 } }),
    ],
    [
      'this node is part of cluster home, peer 20 of cluster away',
      'this node is part of cluster home, peer 20 of cluster (none)',
      'this node is not a member of a cluster yet',
      'this is peer 10, peer 20 has called peer 11',
      'peer 20 answers where peer 21 was called',
      'both sides have the peer id 10: a node has called itself or a copy of itself',
      'no common version of the peer protocol: this node speaks versions 2 to 4, the other one versions 5 to 6; update the older one',
      'no common version of the peer protocol: this node speaks versions 2 to 4, the other one version 0; update the older one',
    ],
  );
});

test('of two streams that were called at the same time, both sides keep the one of the lower peer id', () => {
  const [low, high] = [1, 2];
  const byLow = { session: 5, dialer: low };
  const byHigh = { session: 5, dialer: high };
  for (const [self, other] of [[low, high] as const, [high, low] as const]) {
    assert.equal(takesOver(byLow, byHigh, self, other), true);
    assert.equal(takesOver(byHigh, byLow, self, other), false);
  }
});

test('a second call of the same side, or one of a restarted process, takes over', () => {
  assert.equal(takesOver({ session: 5, dialer: 2 }, { session: 5, dialer: 2 }, 1, 2), true);
  assert.equal(takesOver({ session: 6, dialer: 2 }, { session: 5, dialer: 1 }, 1, 2), true);
});

test('calls back off from 25 ms to at most 800 ms', () => {
  assert.equal(backOffMs(0, 0), 25);
  assert.equal(backOffMs(0, 1), 50);
  assert.equal(backOffMs(3, 1), 400);
  assert.equal(backOffMs(1000, 0), 400);
  assert.equal(backOffMs(1000, 1), 800);
});

test('an address of a peer is http://host:port or https://host:port, and nothing behind it', () => {
  assert.equal(channelTarget('http://10.0.0.1:6335'), '10.0.0.1:6335');
  assert.equal(channelTarget('http://node-1:6335/'), 'node-1:6335');
  assert.equal(channelTarget('http://[::1]:6335'), '[::1]:6335');
  assert.equal(channelTarget('http://node'), 'node:80');
  assert.equal(channelTarget('https://node:6335'), 'node:6335');
  assert.equal(channelTarget('https://node'), 'node:443');
  for (const wrong of ['', 'node:6335', 'ftp://node:6335', 'http://node:6335/path', 'http://', 'http://node:6335?x', 'http://a b:1']) {
    assert.throws(() => channelTarget(wrong), { code: 'wrongInput' }, wrong);
  }
});

test('the host that a caller is seen at can stand in an address', () => {
  assert.equal(hostOf('10.0.0.1:4711'), '10.0.0.1');
  assert.equal(hostOf('::ffff:10.0.0.1:4711'), '10.0.0.1');
  assert.equal(hostOf('fe80::1:4711'), '[fe80::1]');
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { nodeIdentity } from '../../ops/identity.js';

test('a node has one id and one peer id, unlike those of another', () => {
  const [one, other] = [nodeIdentity('1.0.0', 0), nodeIdentity('1.0.0', 0)];
  assert.match(one.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.ok(Number.isInteger(one.peerId) && one.peerId >= 1 && one.peerId < 2 ** 47, `${one.peerId}`);
  assert.deepEqual([one.id, one.peerId], [one.id, one.peerId]);
  assert.notEqual(one.id, other.id);
  assert.notEqual(one.peerId, other.peerId);
});

test('to tell who it is, a node on Linux need not load OpenSSL, which would hold up its first report', (t) => {
  if (process.platform !== 'linux') return t.skip('other systems have no file of random ids');
  const module = JSON.stringify(new URL('../../ops/identity.js', import.meta.url).href);
  const code = `
    const { nodeIdentity } = await import(${module});
    const { id, peerId } = nodeIdentity('1.0.0', 0);
    console.log(JSON.stringify([typeof id, typeof peerId, process.moduleLoadList.includes('NativeModule crypto')]));`;
  const told = execFileSync(process.execPath, ['--input-type=module', '--eval', code], { encoding: 'utf8' });
  assert.deepEqual(JSON.parse(told), ['string', 'number', false]);
});

import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { test } from 'node:test';
import { seededRandom } from '../../ops/random.js';
import { addressBytes, isLoopback, isWithin, networkOf, plainAddressBytes, plainNetwork } from '../../protocols/addresses.js';
import { testSeed } from '../seed.js';

test('what is an address is decided as Node.js does it, for texts that are nearly addresses too', () => {
  const known = [
    '1.2.3.4',
    '01.2.3.4',
    '256.1.1.1',
    '1.2.3',
    '::',
    ':',
    ':::',
    '1::',
    '::1',
    '1:2:3:4:5:6:7:8',
    '1:2:3:4:5:6:7::',
    '::2:3:4:5:6:7:8',
  ];
  const more = [
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    '::ffff:1.2.3.4',
    '::1.2.3.4:5',
    '1.2.3.4::',
    'fe80::1%eth0',
    'g::',
    '12345::',
    '1:2:3:4:5:6:1.2.3.4',
    '',
    ' ::1',
  ];
  for (const text of [...known, ...more, '1:2:3:4:5:6:7:1.2.3.4', '::ffff:1.2.3', '1:2:3:4:5:6:7']) {
    assert.equal(addressBytes(text)?.length ?? 0, { 0: 0, 4: 4, 6: 16 }[isIP(text)], text);
  }
  const random = seededRandom(testSeed());
  const pieces = ['::', ':', '.', '1', 'ff', '0', '255', '256', 'abcd', '12.3.4.5', '%e'];
  for (let round = 0; round < 20_000; round++) {
    const text = Array.from({ length: 1 + random.integer(16) }, () => pieces[random.integer(pieces.length)]).join('');
    assert.equal(addressBytes(text)?.length ?? 0, { 0: 0, 4: 4, 6: 16 }[isIP(text)], text);
  }
});

test('a network holds the addresses that begin as it does, from the first to the last one', () => {
  const within = (address: string, network: string): boolean =>
    isWithin(addressBytes(address) as Uint8Array, networkOf(network) as Exclude<ReturnType<typeof networkOf>, null>);
  assert.deepEqual(
    ['10.0.0.0', '10.255.255.255', '11.0.0.0', '9.255.255.255'].map((address) => within(address, '10.0.0.0/8')),
    [true, true, false, false],
  );
  assert.deepEqual(
    ['10.1.2.128', '10.1.2.191', '10.1.2.192'].map((address) => within(address, '10.1.2.130/26')),
    [true, true, false],
  );
  assert.deepEqual(
    ['fd00::1', 'fdff::', 'fe00::'].map((address) => within(address, 'fd00::/8')),
    [true, true, false],
  );
  assert.ok(within('1.2.3.4', '0.0.0.0/0') && !within('::1', '0.0.0.0/0'));
  for (const wrong of ['10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', 'a/8', '10.0.0/8'])
    assert.equal(networkOf(wrong), null, wrong);
});

test('an IPv4 address is the same one where it came over a socket of IPv6', () => {
  const plain = (address: string): string => plainAddressBytes(addressBytes(address) as Uint8Array).join('.');
  assert.equal(plain('::ffff:10.1.2.3'), '10.1.2.3');
  assert.equal(plain('::ffff:a01:203'), '10.1.2.3');
  assert.equal(plainAddressBytes(addressBytes('::10.1.2.3') as Uint8Array).length, 16);
  const mapped = plainNetwork(networkOf('::ffff:10.0.0.0/104') as Exclude<ReturnType<typeof networkOf>, null>);
  assert.deepEqual([mapped.bytes.length, mapped.bits], [4, 8]);
  assert.equal(plainNetwork(networkOf('::/0') as Exclude<ReturnType<typeof networkOf>, null>).bytes.length, 16);
});

test('addresses of the own machine are 127.0.0.0/8 and ::1', () => {
  const loopback = (address: string): boolean => isLoopback(addressBytes(address) as Uint8Array);
  assert.deepEqual(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'].map(loopback), [true, true, true, true]);
  assert.deepEqual(['0.0.0.0', '::', '128.0.0.1', '::2', '1::1', '10.0.0.1'].map(loopback), [false, false, false, false, false, false]);
});

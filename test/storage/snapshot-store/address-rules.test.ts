import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowedAddresses, closedRangeOf, isListed } from '../../../storage/snapshot-store/address-rules.js';

test('addresses that are not of the public internet are told by their range, the first and last ones included', () => {
  const closed: Record<string, readonly string[]> = {
    unspecified: ['0.0.0.0', '0.255.255.255', '::'],
    private: ['10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255', '192.168.0.0', '192.168.255.255'],
    'carrier-grade NAT': ['100.64.0.0', '100.127.255.255'],
    loopback: ['127.0.0.1', '127.255.255.255', '::1', '0:0:0:0:0:0:0:1'],
    'link-local': ['169.254.0.0', '169.254.169.254', '169.254.255.255', 'fe80::1', 'febf:ffff::1', 'fe80::1%eth0'],
    multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ffff::'],
    reserved: ['192.0.0.8', '240.0.0.0', '255.255.255.255'],
    'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1', '0:0:0:0:0:ffff:a00:1'],
    'IPv4-compatible': ['::127.0.0.1', '::2'],
    NAT64: ['64:ff9b::7f00:1', '64:ff9b::10.0.0.1', '64:ff9b:1::1', '64:ff9b:1:ffff::1'],
    '6to4': ['192.88.99.1', '2002:7f00:1::'],
    Teredo: ['2001::1', '2001:0:ffff::1'],
    'unique local': ['fc00::', 'fdff:ffff::1'],
    'site-local': ['fec0::1'],
    documentation: ['192.0.2.1', '2001:db8::1'],
    benchmarking: ['198.18.0.0', '198.19.255.255'],
    unknown: ['', 'localhost', '1.2.3', '127.0.0.1.5', ':::1', '0x7f000001'],
  };
  for (const [range, addresses] of Object.entries(closed)) {
    for (const address of addresses) assert.equal(closedRangeOf(address), range, address);
  }
});

test('the neighbours of those ranges are public', () => {
  const open = ['1.0.0.0', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0'];
  const more = ['169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '192.167.255.255', '192.169.0.0', '198.17.255.255'];
  const six = [
    '198.20.0.0',
    '223.255.255.255',
    '2606:4700::1111',
    '2001:1::1',
    '2001:4860:4860::8888',
    '64:ff9b:2::1',
    'fbff::1',
    '2003::1',
  ];
  for (const address of [...open, ...more, ...six]) assert.equal(closedRangeOf(address), null, address);
});

test('a list takes addresses, networks and names of hosts, and tells what is none of these', () => {
  const entries = [
    '10.1.0.0/16',
    '192.168.1.5',
    'fd00::/8',
    '[::1]',
    'MinIO.Internal.',
    'a_b',
    '10.0.0.0/33',
    '300.1.1.1',
    'http://x',
    '',
    'a b',
    '::/129',
  ];
  const { allowed, wrong } = allowedAddresses([...entries, '1.2.3.4/8/8', '10.0.0.0/x']);
  assert.deepEqual(wrong, ['10.0.0.0/33', '300.1.1.1', 'http://x', '', 'a b', '::/129', '1.2.3.4/8/8', '10.0.0.0/x']);
  const listed: [string, string][] = [
    ['x', '10.1.255.255'],
    ['x', '192.168.1.5'],
    ['x', 'fd12::1'],
    ['x', '::1'],
    ['minio.internal', '127.0.0.1'],
    ['MINIO.internal.', '127.0.0.1'],
    ['a_b', '10.9.9.9'],
  ];
  for (const [host, address] of listed) assert.equal(isListed(host, address, allowed), true, `${host} ${address}`);
  const others: [string, string][] = [
    ['x', '10.2.0.0'],
    ['x', '192.168.1.6'],
    ['x', '::2'],
    ['x', '::ffff:10.1.0.1'],
    ['evil.minio.internal', '127.0.0.1'],
  ];
  for (const [host, address] of others) assert.equal(isListed(host, address, allowed), false, `${host} ${address}`);
});

test('a network of no bits has all addresses of its family', () => {
  const { allowed } = allowedAddresses(['0.0.0.0/0']);
  assert.equal(isListed('x', '203.0.113.9', allowed), true);
  assert.equal(isListed('x', '::1', allowed), false);
});

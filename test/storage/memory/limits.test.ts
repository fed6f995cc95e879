import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addressLimit,
  anonymousBytes,
  cgroupLimit,
  cgroupMount,
  memoryCgroups,
  oomKills,
  pathsUp,
  tightestLimit,
} from '../../../storage/memory/limits.js';
import { readMemoryLimits, readUsedBytes } from '../../../storage/memory/read-limits.js';

const MACHINE = 16e9;
const NONE = { processBytes: null, cgroupBytes: null, cgroupHighBytes: null, machineBytes: MACHINE };

test('the tightest of process, cgroup and machine is the limit', () => {
  assert.deepEqual(tightestLimit(NONE), { bytes: MACHINE, source: 'machine' });
  assert.deepEqual(tightestLimit({ ...NONE, cgroupBytes: 5e8 }), { bytes: 5e8, source: 'cgroup' });
  assert.deepEqual(tightestLimit({ ...NONE, cgroupBytes: 5e8, cgroupHighBytes: 4e8 }), { bytes: 4e8, source: 'cgroup high' });
  assert.deepEqual(tightestLimit({ ...NONE, cgroupBytes: 5e8, processBytes: 1e8 }), { bytes: 1e8, source: 'process' });
  assert.deepEqual(tightestLimit({ ...NONE, cgroupBytes: 5e10 }), { bytes: MACHINE, source: 'machine' });
});

test('limits are read from the words of the system, and an absent one is none', () => {
  const limits =
    'Limit                     Soft Limit           Hard Limit           Units\nMax address space         4398046511104        unlimited            bytes\n';
  assert.equal(addressLimit(limits), 4398046511104);
  assert.equal(addressLimit(limits.replace('4398046511104', 'unlimited')), null);
  assert.equal(addressLimit(''), null);
  assert.equal(cgroupLimit('536870912\n'), 536870912);
  assert.equal(cgroupLimit('max\n'), null);
  assert.equal(cgroupLimit('9223372036854771712\n'), null, 'what version 1 has for no limit');
  assert.equal(cgroupLimit(''), null);
});

test('both versions of cgroups are found, with the paths above the process', () => {
  const both = '9:name=systemd:/\n4:memory:/pod/node\n1:cpu,cpuacct:/\n0::/pod\n';
  assert.deepEqual(memoryCgroups(both), [
    { version: 1, path: '/pod/node' },
    { version: 2, path: '/pod' },
  ]);
  assert.deepEqual(pathsUp('/pod/node'), ['/pod/node', '/pod', '']);
  assert.deepEqual(pathsUp('/../a'), ['/a', ''], 'a cgroup above the name space is not named');
  const mounts =
    '30 24 0:26 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n' +
    '35 25 0:31 / /sys/fs/cgroup/memory rw,nosuid shared:14 - cgroup cgroup rw,memory\n';
  assert.equal(cgroupMount(mounts, 1), '/sys/fs/cgroup/memory');
  assert.equal(cgroupMount(mounts, 2), '/sys/fs/cgroup/unified');
  assert.equal(cgroupMount('', 2), null);
});

test('kills for memory and the memory of a process are read in both versions', () => {
  assert.equal(oomKills('low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n'), 2);
  assert.equal(oomKills('oom_kill_disable 0\nunder_oom 0\noom_kill 5\n'), 5);
  assert.equal(oomKills(''), null);
  assert.equal(anonymousBytes('VmRSS:\t  300 kB\nRssAnon:\t  100 kB\nRssFile:\t  150 kB\nRssShmem:\t   50 kB\n'), 150 * 1024);
  assert.equal(anonymousBytes(''), null);
});

test('the limits of this process are read, and what it uses is below the machine’s memory', () => {
  const limits = readMemoryLimits();
  const used = readUsedBytes();
  assert.ok(used > 1e6 && used < limits.machineBytes, `${used}`);
  assert.ok(tightestLimit(limits).bytes > used);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countCalls, injected, injecting, KINDS, type Kind } from './kinds.js';
import { inLayers, type Run } from './run.js';

const kindOf = (wanted: string): Kind => KINDS.find(({ name }) => name === wanted) as Kind;

test('calls are counted as strace counts them: each call of each thread by itself, writes only to files of the folder', () => {
  const trace = [
    '7 openat(AT_FDCWD</w>, "/data/a", O_RDONLY) = 3</data/a>',
    '7 openat(AT_FDCWD</w>, "/etc/b", O_RDONLY <unfinished ...>',
    '8  openat(AT_FDCWD</w>, "/data/c", O_RDONLY) = 4</data/c>',
    '7 <... openat resumed>) = 3</etc/b>',
    '7 write(3</data/a>, ""..., 5) = 5',
    '7 pwrite64(3</data/d (deleted)>, ""..., 5, 0) = 5',
    '7 write(5<socket:[12]>, ""..., 5) = 5',
    '8 fsync(4</data/c>) = 0',
  ].join('\n');
  const { all, most, paths } = countCalls(trace, '/data');
  assert.deepEqual([most.get('open'), all.get('open')], [2, 3]);
  assert.deepEqual([most.get('write'), all.get('write')], [1, 2]);
  assert.deepEqual([most.get('sync'), all.get('sync')], [1, 1]);
  assert.deepEqual([...paths].sort(), ['/data/a', '/data/c', '/data/d']);
});

test('one failure is the n-th call alone, failures for a while are twenty from the n-th on', () => {
  const when = (mode: 'once' | 'while') => injecting(kindOf('sync'), mode, 4, ['/data/a'], '/out').at(-1);
  assert.equal(when('once'), '--inject=fsync,fdatasync:error=EIO:when=4');
  assert.equal(when('while'), '--inject=fsync,fdatasync:error=EIO:when=4..23');
});

test('only kinds whose calls also touch sockets or plain memory are bound to files', () => {
  const bound = KINDS.filter((kind) => injecting(kind, 'once', 1, ['/data/a'], '/out').includes('-P')).map(({ name }) => name);
  assert.deepEqual(bound, ['write', 'map']);
});

test('calls that strace made fail are told apart', () => {
  const failed = '8 fsync(4</data/c>) = -1 EIO (Input/output error) (INJECTED)';
  assert.deepEqual(injected(`7 fsync(3</data/a>) = 0\n${failed}\n`), [failed]);
});

test('runs come from coarse to fine: the first ones of each sort are far apart, sorts with few N are through first, and none is left out', () => {
  const runsOf = (name: string, most: number): Run[] =>
    Array.from({ length: most }, (_, at) => ({ place: 'one', phase: 'work', kind: kindOf(name), mode: 'once', n: at + 1 }));
  const all = [...runsOf('open', 160), ...runsOf('sync', 4)];
  const layered = inLayers(all);
  assert.deepEqual(new Set(layered), new Set(all));
  assert.equal(layered.length, all.length);
  assert.deepEqual(
    layered.slice(0, 5).map((run) => `${run.kind.name} ${run.n}`),
    ['open 1', 'open 129', 'open 65', 'open 33', 'sync 1'],
  );
  assert.ok(layered.findLastIndex(({ kind }) => kind.name === 'sync') < 25);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCommandLine } from '../../ops/cli.js';

test('no arguments: serve', () => {
  assert.deepEqual(parseCommandLine([], '1.2.3'), { kind: 'serve', configPath: undefined });
  assert.deepEqual(parseCommandLine(['--disable-telemetry'], '1.2.3'), { kind: 'serve', configPath: undefined });
});

test('--config-path takes a file in both forms', () => {
  for (const args of [['--config-path', 'a.yaml'], ['--config-path=a.yaml']]) {
    assert.deepEqual(parseCommandLine(args, '1.2.3'), { kind: 'serve', configPath: 'a.yaml' });
  }
  assert.equal(parseCommandLine(['--config-path'], '1.2.3').kind, 'refuse');
});

test('--version and --help print', () => {
  assert.deepEqual(parseCommandLine(['--version'], '1.2.3'), { kind: 'print', text: 'troupe 1.2.3\n' });
  const help = parseCommandLine(['--help'], '1.2.3');
  assert.ok(help.kind === 'print' && help.text.includes('--config-path'));
});

test('options of later releases are known and refused by name', () => {
  const cases = [
    ['--uri', 'http://a'],
    ['--bootstrap=http://a'],
    ['--snapshot', 'a:b', '--snapshot', 'c:d'],
    ['--force_snapshot'],
    ['--force-snapshot'],
    ['--storage-snapshot', 'a'],
    ['--reinit'],
  ];
  for (const args of cases) {
    const command = parseCommandLine(args, '1.2.3');
    const name = (args[0] as string).split('=')[0] as string;
    assert.ok(command.kind === 'refuse' && command.message.includes(`${name} is not available`), name);
  }
});

test('unknown options and stray words are refused', () => {
  for (const args of [['--colour'], ['serve'], ['-x'], ['--version=5']])
    assert.equal(parseCommandLine(args, '1.2.3').kind, 'refuse', args[0]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCommandLine } from '../../ops/cli.js';

const ALONE = { uri: null, bootstrap: null, reinit: false };

test('no arguments: serve', () => {
  assert.deepEqual(parseCommandLine([], '1.2.3'), { kind: 'serve', configPath: undefined, cluster: ALONE, secured: false, restore: null });
  assert.deepEqual(parseCommandLine(['--disable-telemetry'], '1.2.3'), {
    kind: 'serve',
    configPath: undefined,
    cluster: ALONE,
    secured: false,
    restore: null,
  });
});

test('options of a cluster go before their variables, and empty variables are none', () => {
  const cluster = (args: readonly string[], environment = {}) => {
    const command = parseCommandLine(args, '1.2.3', environment);
    return command.kind === 'serve' ? command.cluster : command;
  };
  const variables = { SERVICE_URI: 'http://one:1', SERVICE_BOOTSTRAP: 'http://two:2/' };
  assert.deepEqual(cluster([], variables), { uri: 'http://one:1', bootstrap: 'http://two:2', reinit: false });
  assert.deepEqual(cluster(['--uri', 'http://[::1]:6335', '--bootstrap=http://b.c:4', '--reinit'], variables), {
    uri: 'http://[::1]:6335',
    bootstrap: 'http://b.c:4',
    reinit: true,
  });
  assert.deepEqual(cluster([], { SERVICE_URI: '', SERVICE_BOOTSTRAP: '' }), ALONE);
});

test('an address that no peer can have is refused with the name of its option and an example', () => {
  const wrong = ['', 'a', 'a:6335', 'http://a', 'http://a:0', 'http://a:70000', 'http://a:b', 'http://a:1/x', 'http://u@a:1', 'ftp://a:1'];
  for (const uri of wrong) {
    const command = parseCommandLine(['--uri', uri], '1.2.3');
    assert.ok(command.kind === 'refuse' && /^--uri: .*http:\/\/10\.0\.0\.1:6335/.test(command.message), uri);
  }
  const command = parseCommandLine([], '1.2.3', { SERVICE_BOOTSTRAP: 'b' });
  assert.ok(command.kind === 'refuse' && command.message.startsWith('SERVICE_BOOTSTRAP: `b`'));
  const itself = parseCommandLine(['--uri', 'http://a:1', '--bootstrap', 'http://a:1/'], '1.2.3');
  assert.equal(itself.kind, 'serve', 'whether it has to join is known later');
});

test('--config-path takes a file in both forms', () => {
  for (const args of [['--config-path', 'a.yaml'], ['--config-path=a.yaml']]) {
    assert.deepEqual(parseCommandLine(args, '1.2.3'), {
      kind: 'serve',
      configPath: 'a.yaml',
      cluster: ALONE,
      secured: false,
      restore: null,
    });
  }
  assert.equal(parseCommandLine(['--config-path'], '1.2.3').kind, 'refuse');
});

test('--version and --help print', () => {
  assert.deepEqual(parseCommandLine(['--version'], '1.2.3'), { kind: 'print', text: 'troupe 1.2.3\n' });
  const help = parseCommandLine(['--help'], '1.2.3');
  assert.ok(help.kind === 'print' && help.text.includes('--config-path'));
});

test('snapshots to restore are files with collections, or one of a whole storage', () => {
  const restore = (...args: readonly string[]) => {
    const command = parseCommandLine(args, '1.2.3');
    return command.kind === 'serve' ? command.restore : command;
  };
  assert.deepEqual(restore('--snapshot', '/a/b.snapshot:c', '--snapshot=C:\\d:e'), {
    collections: [
      { file: '/a/b.snapshot', collection: 'c' },
      { file: 'C:\\d', collection: 'e' },
    ],
    storage: null,
    force: false,
  });
  for (const force of ['--force_snapshot', '--force-snapshot'])
    assert.deepEqual(restore('--storage-snapshot', 'a', force), { collections: [], storage: 'a', force: true });
});

test('snapshots to restore that are none, or contradict each other, are refused by name', () => {
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['--snapshot', 'file'], /^--snapshot: 'file' is not <file>:<collection>/],
    [['--snapshot', ':c'], /is not <file>:<collection>/],
    [['--snapshot', 'a:'], /is not <file>:<collection>/],
    [['--snapshot', 'a:c', '--snapshot', 'b:c'], /two snapshots for collection c/],
    [['--snapshot', 'a:c', '--storage-snapshot', 'b'], /^--storage-snapshot: .*leave out --snapshot/],
    [['--force_snapshot'], /^--force_snapshot: there is nothing to force/],
  ];
  for (const [args, message] of cases) {
    const command = parseCommandLine(args, '1.2.3');
    assert.ok(command.kind === 'refuse' && message.test(command.message), `${args.join(' ')}: ${JSON.stringify(command)}`);
  }
});

test('unknown options and stray words are refused', () => {
  for (const args of [['--colour'], ['start'], ['-x'], ['--version=5']])
    assert.equal(parseCommandLine(args, '1.2.3').kind, 'refuse', args[0]);
});

test('restore takes one path and its own options, and these belong to no other command', () => {
  const plain = {
    kind: 'restore',
    path: 'a.snapshot',
    collection: null,
    force: false,
    untilMs: null,
    dryRun: false,
    configPath: undefined,
  };
  assert.deepEqual(parseCommandLine(['restore', 'a.snapshot'], '1.2.3'), plain);
  const all = ['restore', '--dry-run', 'a.snapshot', '--collection', 'b', '--force_snapshot'];
  assert.deepEqual(parseCommandLine(all, '1.2.3'), { ...plain, collection: 'b', force: true, dryRun: true });
  const wrong = [
    ['restore'],
    ['restore', 'a', 'b'],
    ['restore', 'a', '--reinit'],
    ['restore', 'a', '--snapshot', 'b:c'],
    ['--dry-run'],
    ['--collection', 'b'],
    ['verify', '--dry-run', 'a'],
  ];
  for (const args of wrong) assert.equal(parseCommandLine(args, '1.2.3').kind, 'refuse', args.join(' '));
});

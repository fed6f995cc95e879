import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatEntry, hasOwnLevel, type LevelFilter, moduleLog, parseLevels } from '../../ops/log.js';
import { isColoured } from '../../ops/outputs.js';

const TIME_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 6);

function written(specification: string, module: string): string[] {
  const lines: string[] = [];
  const output = { format: 'text' as const, filter: parseLevels(specification) as LevelFilter, write: (line: string) => lines.push(line) };
  const log = moduleLog(module, [output], () => TIME_MS);
  for (const level of ['error', 'warn', 'info', 'debug', 'trace'] as const) log[level](level);
  return lines.map((line) => line.split(': ')[1]?.trim() as string);
}

test('a level lets itself and the graver ones through', () => {
  assert.deepEqual(written('WARN', 'http'), ['error', 'warn']);
  assert.deepEqual(written('trace', 'http'), ['error', 'warn', 'info', 'debug', 'trace']);
  assert.deepEqual(written('off', 'http'), []);
});

test('a module may have a level of its own', () => {
  assert.deepEqual(written('warn,http=debug', 'http'), ['error', 'warn', 'info', 'debug']);
  assert.deepEqual(written('warn,http=debug', 'node'), ['error', 'warn']);
  assert.deepEqual(written('http=error', 'node'), ['error', 'warn', 'info']);
});

test('what is no level is told apart', () => {
  for (const specification of ['', 'loud', 'info,', 'http=loud', '=info'])
    assert.equal(parseLevels(specification), undefined, specification);
});

test('an entry is one line, as text or JSON', () => {
  const facts = { path: '/a b', n: 1, big: 2n, error: new Error('no'), none: undefined };
  assert.equal(
    formatEntry('text', TIME_MS, 'INFO', 'http', 'two\nlines', facts),
    '2026-01-02T03:04:05.006Z INFO  http: two\\nlines path="/a b" n=1 big=2 error=no\n',
  );
  assert.deepEqual(JSON.parse(formatEntry('json', TIME_MS, 'WARN', 'http', 'm', facts)), {
    timestamp: '2026-01-02T03:04:05.006Z',
    level: 'WARN',
    module: 'http',
    message: 'm',
    path: '/a b',
    n: 1,
    big: '2',
    error: 'no',
  });
});

test('each output has its own levels, and enabled asks for any of them', () => {
  const first: string[] = [];
  const second: string[] = [];
  const output = (specification: string, lines: string[]) => ({
    format: 'json' as const,
    filter: parseLevels(specification) as LevelFilter,
    write: (line: string) => void lines.push(line),
  });
  const log = moduleLog('http', [output('error', first), output('http=debug', second)], () => TIME_MS);
  log.debug('x');
  log.error('y');
  assert.equal(first.length, 1);
  assert.equal(second.length, 2);
  assert.equal(log.enabled('DEBUG'), true);
  assert.equal(log.enabled('TRACE'), false);
});

test('on a terminal an entry has colours and a short time, and nothing in it steers the terminal', () => {
  const line = formatEntry('terminal', TIME_MS, 'WARN', 'http', 'odd \u001b[2J', { path: '/a\u0007', n: 1 });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
  const plain = line.replace(/\u001b\[\d+m/g, '');
  assert.equal(plain, '03:04:05.006 WARN  http: odd ?[2J path=/a? n=1\n');
  assert.ok(line.includes('\u001b[33mWARN'));
});

test('colours are for terminals, and not for those who do not want them', () => {
  assert.equal(isColoured({ isTTY: true }, {}), true);
  assert.equal(isColoured({}, {}), false);
  assert.equal(isColoured({ isTTY: true }, { NO_COLOR: '1' }), false);
  assert.equal(isColoured({ isTTY: true }, { TERM: 'dumb' }), false);
});

test('a level of its own is asked for by name', () => {
  const outputs = (specification: string) => [
    { format: 'text' as const, filter: parseLevels(specification) as LevelFilter, write: () => {} },
  ];
  assert.equal(hasOwnLevel(outputs('TRACE'), 'access'), false);
  assert.equal(hasOwnLevel(outputs('WARN,access=INFO'), 'access'), true);
  assert.equal(hasOwnLevel(outputs('WARN,access=OFF'), 'access'), false);
});

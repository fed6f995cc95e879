import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const BUNDLE = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'bundle');
/** What `SourceMap` answers where it knows the place. */
interface Found {
  readonly originalSource: string;
  readonly originalLine: number;
  readonly originalColumn: number;
}

const ESCAPE = /\\u[0-9a-f]{4}/;

test('programs of the bundle have ASCII alone: V8 would keep each at two bytes a character, in every thread', () => {
  const programs = readdirSync(BUNDLE).filter((name) => name.endsWith('.cjs'));
  const beyond = programs.filter((name) => readFileSync(join(BUNDLE, name)).some((byte) => byte > 0x7f));
  assert.notEqual(programs.length, 0);
  assert.deepEqual(beyond, []);
});

test('behind an escaped character the source map of the bundle still finds each function where it was written', () => {
  const map = new SourceMap(JSON.parse(readFileSync(join(BUNDLE, 'doors-program.cjs.map'), 'utf8')) as SourceMapPayload);
  const lines = readFileSync(join(BUNDLE, 'doors-program.cjs'), 'utf8').split('\n');
  let looked = 0;
  for (const [at, line] of lines.entries()) {
    const escaped = line.search(ESCAPE);
    if (escaped < 0) continue;
    for (const { 1: name, index } of line.matchAll(/function ([a-z]\w+)\(/gi)) {
      const entry = index < escaped ? undefined : (map.findEntry(at, index) as Partial<Found>);
      if (entry?.originalSource === undefined || entry.originalSource.includes('node_modules')) continue;
      const source = readFileSync(join(BUNDLE, entry.originalSource), 'utf8').split('\n')[entry.originalLine as number] ?? '';
      assert.ok(source.slice(entry.originalColumn).includes(`function ${name}`), `${name}: ${source}`);
      looked++;
    }
  }
  assert.ok(looked > 100, `${looked} functions`);
});

/** What a program prints as it ends: by what V8 tells whether it may take compiled code that was kept. */
function tagAtEnd(...words: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-tag-'));
  try {
    const file = join(folder, 'tell.cjs');
    writeFileSync(file, "process.on('exit', () => console.log('tag', require('node:v8').cachedDataVersionTag()));");
    const { stdout } = spawnSync(process.execPath, ['--require', file, ...words], { encoding: 'utf8' });
    return /^tag \d+$/m.exec(stdout)?.[0] ?? stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('a heap made with an option of V8 costs a start no compiled code: the option is taken back before the program is loaded', () => {
  const without = tagAtEnd('--eval', '0');
  assert.match(without, /^tag/);
  assert.notEqual(tagAtEnd('--initial-old-space-size=64', '--eval', '0'), without);
  assert.equal(tagAtEnd('--initial-old-space-size=64', join(BUNDLE, 'main.cjs'), '--version'), without);
});

test('a start does not load OpenSSL (9 ms and 4 MB) for what few nodes do', () => {
  const servers = readdirSync(BUNDLE)
    .filter((name) => name.endsWith('.cjs'))
    .map((name) => readFileSync(join(BUNDLE, name), 'utf8'))
    .filter((program) => program.includes('Troupe is listening'));
  assert.equal(servers.length, 1);
  assert.doesNotMatch(servers.join(), /require\("node:crypto"\)/);
});

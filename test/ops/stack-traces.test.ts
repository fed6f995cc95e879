import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SOURCE = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'ops', 'stack-traces.cjs');

/** What a program prints that loads `stack-traces.cjs` in its first line, and has this text in its second. */
function errorOf(text: string, map: string | null): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-stack-'));
  try {
    copyFileSync(SOURCE, join(folder, 'stack-traces.cjs'));
    const file = join(folder, 'program.cjs');
    writeFileSync(file, `require('./stack-traces.cjs');\n${text}\n`);
    if (map !== null) writeFileSync(`${file}.map`, map);
    return spawnSync(process.execPath, [file], { encoding: 'utf8' }).stderr;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const MAP = JSON.stringify({ version: 3, sources: ['made/from.js'], names: [], mappings: ';AASA' });

test('a stack trace of the bundle names the file that the bundle was made of', () => {
  assert.match(errorOf("throw new TypeError('broken');", MAP), /TypeError: broken\n +at .*made\/from\.js:10:1/);
});

test('a stack trace without a source map, or with a damaged one, names the file itself', () => {
  assert.match(errorOf("throw new TypeError('broken');", null), /TypeError: broken\n +at .*program\.cjs:2:7/);
  assert.match(errorOf("throw new TypeError('broken');", '{'), /TypeError: broken\n +at .*program\.cjs:2:7/);
});

test('an error whose name cannot be read has a stack trace, too', () => {
  const text =
    "const error = new Error('x'); Object.defineProperty(error, 'name', { get() { throw new Error('no'); } }); console.error(error.stack);";
  assert.match(errorOf(text, null), /^Error\n +at .*program\.cjs:2/);
});

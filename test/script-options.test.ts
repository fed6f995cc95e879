import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import test from 'node:test';

const SCRIPTS = ['simulation/main.js', 'process/chaos/main.js', 'process/faults/main.js', 'process/hostile/main.js'];

function answerOf(script: string, ...given: string[]) {
  return spawnSync(process.execPath, [join(import.meta.dirname, script), ...given], { encoding: 'utf8' });
}

test('--help of each long script tells its options, and an option it does not know is told in a sentence instead of a stack', () => {
  for (const script of SCRIPTS) {
    const help = answerOf(script, '--help');
    assert.equal(help.status, 0, script);
    assert.match(help.stdout, /^npm run \w+ -- \[options\]/);
    const unknown = answerOf(script, '--nonsense');
    assert.equal(unknown.status, 2, script);
    assert.match(unknown.stderr, /^Unknown option '--nonsense'/);
    assert.doesNotMatch(unknown.stderr, /\n\s+at /);
  }
});

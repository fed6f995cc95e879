import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { ToolError } from '../../../ops/client/tool.js';
import { TOOL_NAMES } from '../../../ops/tool-names.js';
import { commandWords } from '../../../ops/tools/completion.js';
import { completionScript, wordsOfUsage } from '../../../ops/tools/completion-script.js';
import { toolNamed } from '../../../ops/tools/run.js';

test('every option that a command shows is one that it takes, and every action is one that it knows', async () => {
  for (const name of TOOL_NAMES) {
    const { run, usage } = await toolNamed(name);
    const { actions, options } = wordsOfUsage(name, usage);
    // No node is asked.
    const nowhere = options.includes('--url') ? ['--url', 'ftp://nowhere'] : [];
    assert.ok(
      usage.split('\n').every((line) => line.length <= 140),
      name,
    );
    for (const option of options.filter((one) => one !== '--help')) {
      // An action that is none comes after the options have been read.
      const args = ['no-such-action', 'a', 'b', 'c', 'd', option, 'value', ...nowhere];
      const error = await Promise.resolve()
        .then(() => run(args, () => {}))
        .then(
          () => null,
          (reason: NodeJS.ErrnoException) => reason,
        );
      assert.notEqual(error?.code, 'ERR_PARSE_ARGS_UNKNOWN_OPTION', `${name} ${option}`);
    }
    for (const action of actions.filter((one) => name !== 'completion' && one !== '')) {
      const error = await Promise.resolve()
        .then(() => run([action, ...nowhere], () => {}))
        .then(
          () => null,
          (reason: unknown) => reason,
        );
      assert.ok(error instanceof ToolError && !/^'\w+' is not /.test(error.message), `${name} ${action}: ${error}`);
    }
  }
});

test('a shell completes commands, actions and options', async () => {
  const commands = await commandWords();
  assert.ok(commands[0]?.actions.includes('serve') && commands[0].actions.includes('points'));
  assert.deepEqual(commands.find(({ name }) => name === 'points')?.actions, ['get', 'scroll', 'count', 'upsert', 'delete']);
  const script = completionScript('bash', commands);
  const completed = (...typed: string[]): string[] => {
    const words = typed.map((word) => `'${word}'`).join(' ');
    const run = `${script}\nCOMP_WORDS=(troupe ${words}); COMP_CWORD=${typed.length}; _troupe; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { status, stderr, stdout } = spawnSync('bash', ['-c', run], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    return stdout.split('\n').filter((line) => line !== '');
  };
  assert.deepEqual(completed('coll'), ['collections']);
  assert.deepEqual(completed('points', 'sc'), ['scroll']);
  assert.deepEqual(completed('points', 'scroll', 'c', '--with'), ['--with-vector']);
  assert.deepEqual(completed('--storage'), ['--storage-snapshot']);
  assert.match(completionScript('fish', commands), /complete -c troupe -n '__fish_seen_subcommand_from points' -a 'get scroll /);
});

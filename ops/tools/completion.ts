/** `troupe completion`: what a shell needs to complete the command line of `troupe`. */

import { argumentWords, wrongAction } from '../client/arguments.js';
import type { Tool } from '../client/tool.js';
import { TOOL_NAMES } from '../tool-names.js';
import { type CommandWords, completionScript, SHELLS, wordsOfUsage } from './completion-script.js';
import { toolNamed } from './run.js';

export const COMPLETION_TOOL: Tool = {
  usage: `Usage: troupe completion bash|zsh|fish

Prints a script that completes commands and options:

  source <(troupe completion bash)                                      # or zsh; in ~/.bashrc or ~/.zshrc for good
  troupe completion fish > ~/.config/fish/completions/troupe.fish
`,
  async run(args, out) {
    const [name = ''] = argumentWords(null, args, 'shell');
    const shell = SHELLS.find((known) => known === name);
    if (shell === undefined) throw wrongAction(name, ...SHELLS);
    out(completionScript(shell, await commandWords()));
    return 0;
  },
};

/** All commands with their actions and options. */
export async function commandWords(): Promise<CommandWords[]> {
  const { USAGE } = await import('../cli.js');
  const server = wordsOfUsage('', USAGE);
  const own = ['serve', 'verify', 'restore'].map((name) => ({ name, actions: [], options: server.options }));
  const tools = await Promise.all(TOOL_NAMES.map(async (name) => wordsOfUsage(name, (await toolNamed(name)).usage)));
  return [{ name: '', actions: [...own, ...tools].map(({ name }) => name), options: server.options }, ...own, ...tools];
}

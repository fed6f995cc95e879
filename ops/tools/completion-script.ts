/** Scripts for shells, from the words of commands. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** The words that may follow a command. */
export interface CommandWords {
  /** Empty: `troupe` itself, whose actions are the commands. */
  readonly name: string;
  readonly actions: readonly string[];
  /** With their dashes. */
  readonly options: readonly string[];
}

/** Actions and options of a command, as its usage shows them. */
export function wordsOfUsage(name: string, usage: string): CommandWords {
  const first = new RegExp(`^(?:Usage:| {6}) troupe ${name} ([a-z]+(?:\\|[a-z]+)*)`, 'gm');
  const actions = name === '' ? [] : [...usage.matchAll(first)].flatMap(([, words = '']) => words.split('|'));
  const options = [...usage.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, option = '']) => option);
  return { name, actions: [...new Set(actions)], options: [...new Set([...options, '--help'])].sort() };
}

export function completionScript(shell: Shell, commands: readonly CommandWords[]): string {
  switch (shell) {
    case 'bash':
      return bashScript(commands);
    case 'zsh':
      // Functions for Bash work there, too.
      return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(commands)}`;
    case 'fish':
      return fishScript(commands);
    default:
      return shell satisfies never;
  }
}

function bashScript(commands: readonly CommandWords[]): string {
  const cases = commands.map(
    ({ actions, name, options }) => `    ${name === '' ? "''" : name}) actions='${actions.join(' ')}' options='${options.join(' ')}' ;;`,
  );
  return `# Completion of troupe.
_troupe() {
  local word=\${COMP_WORDS[COMP_CWORD]} command='' actions='' options=''
  [ "$COMP_CWORD" -gt 1 ] && command=\${COMP_WORDS[1]}
  case "$command" in -*) command='' ;; esac
  case "$command" in
${cases.join('\n')}
  esac
  COMPREPLY=()
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) [ "$COMP_CWORD" -le 2 ] && [ -n "$actions" ] && COMPREPLY=($(compgen -W "$actions" -- "$word")) ;;
  esac
}
complete -o default -F _troupe troupe
`;
}

function fishScript(commands: readonly CommandWords[]): string {
  const lines = commands.flatMap(({ actions, name, options }) => {
    const when = name === '' ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${name}`;
    const words = actions.length === 0 ? [] : [`complete -c troupe -n '${when}' -a '${actions.join(' ')}'`];
    return [...words, ...options.map((option) => `complete -c troupe -n '${when}' -l ${option.slice(2)}`)];
  });
  return `# Completion of troupe.\n${lines.join('\n')}\n`;
}

/** What `parseArgs` says is wrong, without what it says of arguments that begin with a hyphen: no command takes one. */
export function optionProblem(message: string): string {
  return message.replace(/^(Unknown option '[^']*')\. .*$/s, '$1');
}

/** Runs a tool of the command line, and prints what is wrong with its arguments. */

import type { ToolName } from './names.js';
import { type Tool, ToolError } from './tool.js';

const WRONG_ARGUMENTS = 2;

/** The exit code. 2: the arguments are wrong. */
export async function runTool(name: ToolName, args: readonly string[]): Promise<number> {
  const { run, usage } = await toolNamed(name);
  const out = (text: string): void => void process.stdout.write(text);
  // Whoever reads has seen enough (`| head`).
  process.stdout.on('error', () => process.exit(0));
  if (args.includes('--help') || args.includes('-h')) {
    out(usage);
    return 0;
  }
  try {
    return await run(args, out);
  } catch (error) {
    const { exitCode, message } = error instanceof ToolError ? error : { exitCode: WRONG_ARGUMENTS, message: (error as Error).message };
    process.stderr.write(`troupe ${name}: ${message}\n${exitCode === WRONG_ARGUMENTS ? `\n${usage}` : ''}`);
    return exitCode;
  }
}

async function toolNamed(name: ToolName): Promise<Tool> {
  switch (name) {
    case 'key':
      return (await import('./key.js')).KEY_TOOL;
    case 'token':
      return (await import('./token.js')).TOKEN_TOOL;
    case 'audit':
      return (await import('./audit.js')).AUDIT_TOOL;
    default:
      return name satisfies never;
  }
}

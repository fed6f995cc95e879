/** Runs a tool of the command line, and prints what is wrong with its arguments. */

import { EXIT, type Tool, ToolError } from '../client/tool.js';
import { optionProblem } from '../option-problem.js';
import type { ToolName } from '../tool-names.js';

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
    const { exitCode, message } = error instanceof ToolError ? error : failureOf(error);
    process.stderr.write(`troupe ${name}: ${message}\n${exitCode === EXIT.wrongArguments ? `\n${shortUsage(name, usage)}` : ''}`);
    return exitCode;
  }
}

/** The forms of the command: all that it takes would hide what is wrong. */
function shortUsage(name: ToolName, usage: string): string {
  return `${usage.slice(0, usage.indexOf('\n\n'))}\n\n\`troupe ${name} --help\` tells all of it.\n`;
}

/** Errors of `parseArgs` are about the arguments; all others have happened to the work. */
function failureOf(error: unknown): { readonly exitCode: number; readonly message: string } {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!code?.startsWith('ERR_PARSE_ARGS_')) return { exitCode: EXIT.refused, message };
  return { exitCode: EXIT.wrongArguments, message: optionProblem(message) };
}

export async function toolNamed(name: ToolName): Promise<Tool> {
  switch (name) {
    case 'collections':
      return (await import('./collections.js')).COLLECTIONS_TOOL;
    case 'points':
      return (await import('./points.js')).POINTS_TOOL;
    case 'query':
      return (await import('./query.js')).QUERY_TOOL;
    case 'explain':
      return (await import('./explain.js')).EXPLAIN_TOOL;
    case 'import':
      return (await import('./import.js')).IMPORT_TOOL;
    case 'export':
      return (await import('./export.js')).EXPORT_TOOL;
    case 'snapshot':
      return (await import('./snapshot.js')).SNAPSHOT_TOOL;
    case 'cluster':
      return (await import('./cluster.js')).CLUSTER_TOOL;
    case 'actors':
      return (await import('./actors.js')).ACTORS_TOOL;
    case 'completion':
      return (await import('./completion.js')).COMPLETION_TOOL;
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

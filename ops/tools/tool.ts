/** What a tool of the command line is. */

export interface Tool {
  readonly usage: string;
  /** Resolves to the exit code. Errors: `ToolError`; those of `parseArgs`. */
  readonly run: (args: readonly string[], out: (text: string) => void) => Promise<number> | number;
}

/** Printed without a stack. exitCode: 2 for wrong arguments, after which the usage is printed; 1 for all else. */
export class ToolError extends Error {
  constructor(
    message: string,
    readonly exitCode: 1 | 2,
  ) {
    super(message);
  }
}

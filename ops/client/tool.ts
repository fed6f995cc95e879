/** What a tool of the command line is. */

export interface Tool {
  /** What `--help` prints. Completion of shells reads actions and options from it. */
  readonly usage: string;
  /** Resolves to the exit code. Errors: `ToolError`; those of `parseArgs`. */
  readonly run: (args: readonly string[], out: (text: string) => void) => Promise<number> | number;
}

/** What went wrong, as the exit code: 1 for all that is not one of the others. */
export const EXIT = { refused: 1, wrongArguments: 2, unreachable: 3 } as const;

/** Printed without a stack. After wrong arguments the usage is printed, too. */
export class ToolError extends Error {
  constructor(
    message: string,
    readonly exitCode: (typeof EXIT)[keyof typeof EXIT],
  ) {
    super(message);
  }
}

/** Wrong arguments. */
export function wrongArguments(message: string): ToolError {
  return new ToolError(message, EXIT.wrongArguments);
}

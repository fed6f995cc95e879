/** Options of the long scripts (`npm run chaos`, `faults`, `hostile`, `simulate`): `--help`, and a sentence instead of a stack for what they don't know. */

import { type ParseArgsConfig, parseArgs } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;

/**
 * The values of `options` on the command line, the options' own types. With `--help` the usage goes to standard output and the process ends with 0; an
 * option or value that is not understood is told on standard error, and the process ends with 2.
 */
export function scriptOptions<const Given extends Options>(
  usage: string,
  options: Given,
): ReturnType<typeof parseArgs<{ options: Given }>>['values'] {
  try {
    if (!process.argv.slice(2).some((word) => word === '--help' || word === '-h')) return parseArgs({ options }).values;
  } catch (error) {
    if (!String((error as { code?: unknown }).code).startsWith('ERR_PARSE_ARGS')) throw error;
    process.stderr.write(`${(error as Error).message}\n\n${usage}\n`);
    process.exit(2);
  }
  process.stdout.write(`${usage}\n`);
  process.exit(0);
}

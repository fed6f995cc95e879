/** The command line of `troupe`. */

import { parseArgs } from 'node:util';

export type Command =
  | { readonly kind: 'serve'; readonly configPath: string | undefined }
  /** Print `text` and end well. */
  | { readonly kind: 'print'; readonly text: string }
  /** Print `message` and end with exit code 2. */
  | { readonly kind: 'refuse'; readonly message: string };

export const USAGE = `Usage: troupe [options]

Options:
  --config-path <file>   settings in YAML, read after config/*.yaml
  --disable-telemetry    accepted for compatibility: nothing is ever sent anywhere
  --version              print the version
  --help                 print this text

Settings also come from variables such as SERVICE__SERVICE__HTTP_PORT=6333; see ops/README.md.
`;

/** Options of later releases. */
const LATER = ['uri', 'bootstrap', 'snapshot', 'force_snapshot', 'force-snapshot', 'storage-snapshot', 'reinit'];

/** What the arguments after the program's name ask for. */
export function parseCommandLine(args: readonly string[], version: string): Command {
  let values: Record<string, unknown>;
  try {
    values = parseArgs({
      args: [...args],
      options: {
        'config-path': { type: 'string' },
        'disable-telemetry': { type: 'boolean' },
        version: { type: 'boolean', short: 'V' },
        help: { type: 'boolean', short: 'h' },
        uri: { type: 'string' },
        bootstrap: { type: 'string' },
        snapshot: { type: 'string', multiple: true },
        force_snapshot: { type: 'boolean' },
        'force-snapshot': { type: 'boolean' },
        'storage-snapshot': { type: 'string' },
        reinit: { type: 'boolean' },
      },
      strict: true,
      allowPositionals: false,
    }).values;
  } catch (error) {
    return { kind: 'refuse', message: `${error instanceof Error ? error.message : String(error)}\n\n${USAGE}` };
  }
  if (values.help === true) return { kind: 'print', text: USAGE };
  if (values.version === true) return { kind: 'print', text: `troupe ${version}\n` };
  const later = LATER.find((name) => values[name] !== undefined);
  if (later !== undefined) return { kind: 'refuse', message: `--${later} is not available in this release\n` };
  return { kind: 'serve', configPath: values['config-path'] as string | undefined };
}

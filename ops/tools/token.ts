/** `troupe token`: signs a token, and checks it as a node would. */

import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { checkSignedToken, signedToken } from '../../http/access/token.js';
import { type Tool, ToolError } from '../client/tool.js';
import { loadSettings } from '../config/load.js';
import { ownKeyFile } from '../keys/own-key.js';
import { claimsFrom } from './token-claims.js';

export const TOKEN_TOOL: Tool = {
  usage: `Usage: troupe token (--access r|m | --collection <name>:r|rw …) [options]

Prints a token (JWT, HS256) for clients of nodes with service.jwt_rbac. It is signed with service.api_key, here and now: no node is asked.

Options:
  --access r|m           read everything, or manage everything
  --collection <name>:r|rw
                         read, or read and write, this collection alone; may be given again for others
  --tenant <collection>:<key>=<value>
                         see and change only the points of this collection that have this payload
  --expires <span>       how long it is in force: 90s, 30m, 8h, 7d; without it for as long as the key
  --value-exists <collection>:<key>=<value>
                         in force while a point with this payload is there; may be given again for further values
  --subject <name>       who gets it, for the audit log (claim sub)

The key is that of the settings (or of a secured node's storage folder), or of
  --key-env <name>       an environment variable
  --key-file <file>      a file
  --key-stdin            standard input
  --key <key>            the command line, where other users of the machine can see it
  --config-path <file>   further settings
`,
  run(args, out) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        access: { type: 'string' },
        collection: { type: 'string', multiple: true },
        tenant: { type: 'string', multiple: true },
        expires: { type: 'string' },
        'value-exists': { type: 'string', multiple: true },
        subject: { type: 'string' },
        'key-env': { type: 'string' },
        'key-file': { type: 'string' },
        'key-stdin': { type: 'boolean' },
        key: { type: 'string' },
        'config-path': { type: 'string' },
      },
      strict: true,
      allowPositionals: false,
    });
    const { access, collection, expires, subject, tenant } = values;
    const claims = claimsFrom({ access, collection, expires, subject, tenant, valueExists: values['value-exists'] }, Date.now());
    const key = keyOf(values);
    const token = signedToken(claims, key);
    const checked = checkSignedToken(token, [key]);
    if (checked.kind !== 'signed') throw new ToolError(checked.kind === 'badClaims' ? checked.problem : 'the token cannot be read', 2);
    if (expires === undefined) process.stderr.write('troupe token: without --expires the token is in force for as long as its key\n');
    out(`${token}\n`);
    return 0;
  },
};

interface KeySources {
  readonly 'key-env'?: string | undefined;
  readonly 'key-file'?: string | undefined;
  readonly 'key-stdin'?: boolean | undefined;
  readonly key?: string | undefined;
  readonly 'config-path'?: string | undefined;
}

/** Errors: ToolError, if there is none, or more than one source. */
function keyOf(sources: KeySources): string {
  const { key, 'key-env': variable, 'key-file': file, 'key-stdin': stdin } = sources;
  const given = [key, variable, file, stdin].filter((source) => source !== undefined);
  if (given.length > 1) throw new ToolError('one of --key-env, --key-file, --key-stdin and --key', 2);
  const found =
    key ??
    (variable !== undefined
      ? process.env[variable]
      : file !== undefined || stdin === true
        ? readFileSync(file ?? 0, 'utf8').trim()
        : keyOfSettings(sources['config-path']));
  if (found === undefined || found === '')
    throw new ToolError('there is no key: set service.api_key, or say where the key is (--key-env, --key-file or --key-stdin)', 1);
  return found;
}

function keyOfSettings(configPath: string | undefined): string | undefined {
  const { service, storage } = loadSettings({ folder: process.cwd(), configPath, environment: process.env }).settings;
  const file = ownKeyFile(storage.storage_path);
  return service.api_key || (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined);
}

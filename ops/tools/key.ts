/** `troupe key`: a new key for the settings. */

import { parseArgs } from 'node:util';
import type { Tool } from '../client/tool.js';
import { freshKey } from '../keys/fresh-key.js';

export const KEY_TOOL: Tool = {
  usage: `Usage: troupe key

Prints a new random key (256 bit, 43 characters) for service.api_key, service.read_only_api_key or service.alt_api_key:

  SERVICE__SERVICE__API_KEY=$(troupe key)
`,
  run(args, out) {
    parseArgs({ args: [...args], strict: true, allowPositionals: false });
    out(`${freshKey()}\n`);
    return 0;
  },
};

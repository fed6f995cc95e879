/** `troupe audit`: reads and filters the audit log. */

import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { auditFiles } from '../../http/audit/plan-files.js';
import { type Tool, ToolError } from '../client/tool.js';
import { loadSettings } from '../config/load.js';
import { AUDIT_HEADING, type AuditFilter, isAskedFor, readAuditLine, shownLine } from './audit-lines.js';
import { momentMs } from './moments.js';

const FOLLOW_MS = 250;

export const AUDIT_TOOL: Tool = {
  usage: `Usage: troupe audit [options] [folder]

Shows the audit log in a folder (audit.dir of the settings, if left out), oldest records first.

Options:
  --since <time>         from this time on: 2026-11-25, 2026-11-25T18:00:00Z (UTC), or so long ago: 30m, 8h, 7d
  --until <time>         up to this time
  --who <text>           of callers that are shown with this text: api_key, read_only_api_key, a token's subject or fingerprint, stranger
  --operation <name>     such as query_points or delete_collection; unknown: there is no such path
  --collection <name>    as requests have named it
  --denied               what was refused for want of access
  --follow               go on with records as they are written
  --json                 the lines as they are, for programs
  --config-path <file>   further settings
`,
  async run(args, out) {
    const { positionals, values } = parseArgs({
      args: [...args],
      options: {
        since: { type: 'string' },
        until: { type: 'string' },
        who: { type: 'string' },
        operation: { type: 'string' },
        collection: { type: 'string' },
        denied: { type: 'boolean' },
        follow: { type: 'boolean' },
        json: { type: 'boolean' },
        'config-path': { type: 'string' },
      },
      strict: true,
      allowPositionals: true,
    });
    if (positionals.length > 1) throw new ToolError(`one folder, not also '${positionals.slice(1).join(' ')}'`, 2);
    const filter: AuditFilter = {
      sinceMs: moment('--since', values.since, Number.NEGATIVE_INFINITY),
      untilMs: moment('--until', values.until, Number.POSITIVE_INFINITY),
      who: values.who ?? null,
      operation: values.operation ?? null,
      collection: values.collection ?? null,
      deniedOnly: values.denied === true,
    };
    const folder = positionals[0] ?? folderOfSettings(values['config-path']);
    const asJson = values.json === true;
    if (!asJson) out(AUDIT_HEADING);
    let broken = 0;
    for await (const text of lines(folder, values.follow === true)) {
      const line = readAuditLine(text);
      if (line === null) broken++;
      else if (isAskedFor(line, filter)) out(asJson ? `${text}\n` : shownLine(line));
    }
    if (broken > 0) process.stderr.write(`troupe audit: ${broken} lines are no records, and were left out\n`);
    return 0;
  },
};

function moment(option: string, text: string | undefined, otherwise: number): number {
  const timeMs = text === undefined ? otherwise : momentMs(text, Date.now());
  if (timeMs === null) throw new ToolError(`${option}: '${text}' is no time such as 2026-11-25T18:00:00Z, and no span such as 8h`, 2);
  return timeMs;
}

function folderOfSettings(configPath: string | undefined): string {
  return loadSettings({ folder: process.cwd(), configPath, environment: process.env }).settings.audit.dir;
}

/** Lines of all files, oldest files first; with `follow`, without an end. */
async function* lines(folder: string, follow: boolean): AsyncGenerator<string> {
  /** Where each file was read to. */
  const read = new Map<string, number>();
  const begun = new Map<string, string>();
  for (;;) {
    for (const name of await filesOf(folder)) {
      const path = join(folder, name);
      const start = read.get(name) ?? 0;
      const size = (await stat(path).catch(() => null))?.size ?? 0;
      if (size <= start) continue;
      let text = begun.get(name) ?? '';
      for await (const chunk of createReadStream(path, { start, end: size - 1, encoding: 'utf8' })) {
        const parts = `${text}${chunk}`.split('\n');
        text = parts.pop() as string;
        yield* parts.filter((part) => part !== '');
      }
      read.set(name, size);
      begun.set(name, text);
    }
    if (!follow) {
      yield* [...begun.values()].filter((text) => text !== '');
      return;
    }
    await setTimeout(FOLLOW_MS);
  }
}

async function filesOf(folder: string): Promise<string[]> {
  try {
    return auditFiles(await readdir(folder));
  } catch (error) {
    throw new ToolError(`${folder} cannot be read: ${(error as Error).message} (audit.dir; audit.enabled makes it)`, 1);
  }
}

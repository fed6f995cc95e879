/** The command line of `troupe`. */

import { parseArgs } from 'node:util';
import type { StartRestore } from '../actors/snapshots/restore-at-start.js';
import { parseDatetime } from '../protocols/datetime.js';
import { optionProblem } from './option-problem.js';
import { peerUri } from './peer-uri.js';
import { TOOLS, type ToolName, toolName } from './tool-names.js';

/** How a node of a cluster is started. */
export interface ClusterStart {
  /** `http://host:port`; null where the option was left out. */
  readonly uri: string | null;
  readonly bootstrap: string | null;
  readonly reinit: boolean;
}

export type Command =
  | {
      readonly kind: 'serve';
      readonly configPath: string | undefined;
      readonly cluster: ClusterStart;
      /** As `service.secured`. */
      readonly secured: boolean;
      /** Null: no snapshot is restored. */
      readonly restore: StartRestore | null;
    }
  /** Look through a storage folder, or the archive of a snapshot; null: the storage folder of the settings. unpack: each shard of an archive, too. */
  | { readonly kind: 'verify'; readonly path: string | null; readonly unpack: boolean; readonly configPath: string | undefined }
  /** Restore an archive into the storage folder of the settings, of a node that is stopped; dryRun: only say what that would do. */
  | {
      readonly kind: 'restore';
      readonly path: string;
      /** Null: the name that the collection had. */
      readonly collection: string | null;
      readonly force: boolean;
      /** The log of the collection follows the snapshot up to this date in milliseconds; null: the snapshot as it is. */
      readonly untilMs: number | null;
      readonly dryRun: boolean;
      readonly configPath: string | undefined;
    }
  /** Run a tool on the arguments behind its name (`tools/`). */
  | { readonly kind: 'tool'; readonly name: ToolName; readonly args: readonly string[] }
  /** Print `text` and end well. */
  | { readonly kind: 'print'; readonly text: string }
  /** Print `message` and end with exit code 2. */
  | { readonly kind: 'refuse'; readonly message: string };

export type CommandLineOf<Kind extends Command['kind']> = Extract<Command, { kind: Kind }>;

export const USAGE = `Usage: troupe [serve] [options]      serve a node
       troupe verify [path]     look through a storage folder that no node has open (that of the settings, if left out), or
                                through the file of a snapshot; print what is wrong
       troupe restore <file>    restore a snapshot into the storage folder of a node that is stopped, and end
       troupe restore --dry-run <path>
                                look through a snapshot, or all that are in a folder; print what they have and what a restore
                                would do; change nothing
       troupe <command> …       (troupe <command> --help)
${Object.entries(TOOLS)
  .map(([name, what]) => `         ${name.padEnd(22)} ${what}`)
  .join('\n')}

Options:
  --config-path <file>   settings in YAML, read after config/*.yaml
  --uri <address>        in a cluster: where other peers reach this one, http://host:port of its internal port; founds a
                         cluster, or with --bootstrap joins one (or the variable SERVICE_URI)
  --bootstrap <address>  in a cluster: internal address of any peer of the one to join (or the variable SERVICE_BOOTSTRAP)
  --reinit               in a cluster: forget what consensus has stored, and who this peer was; keep the collections
  --secured              ask every client for a key: the one of the settings, or one that is made at the first start and printed
                         once (as service.secured: true)
  --snapshot <file>:<collection>
                         on a node of its own: restore a snapshot of a collection before the start; may be given again for others
  --storage-snapshot <file>
                         on a node of its own: restore a snapshot of a whole storage before the start
  --force_snapshot       with these and with restore: replace collections that exist
  --collection <name>    of restore: the collection that it becomes; without it, the one that it was
  --disable-telemetry    accepted for compatibility: nothing is ever sent anywhere
  --until <time>         of restore: bring the snapshot on with what the log of the collection has up to then, such as
                         2026-11-25T19:00:00Z; the collection is replaced
  --unpack               of verify: unpack the shards of a snapshot one after the other (in storage.temp_path), and look through
                         their records, too
  --version              print the version
  --help                 print this text

A cluster needs the setting cluster.enabled (SERVICE__CLUSTER__ENABLED=true); without it a node is on its own.
Settings also come from variables such as SERVICE__SERVICE__HTTP_PORT=6333; see ops/README.md.
`;

/** What the arguments after the program's name ask for. environment: variables that stand for options which were left out. */
export function parseCommandLine(
  args: readonly string[],
  version: string,
  environment: Readonly<Record<string, string | undefined>> = {},
): Command {
  const tool = toolName(args[0]);
  if (tool !== null) return { kind: 'tool', name: tool, args: args.slice(1) };
  let values: Record<string, unknown>;
  let words: readonly string[];
  try {
    ({ positionals: words, values } = parseArgs({
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
        secured: { type: 'boolean' },
        unpack: { type: 'boolean' },
        'dry-run': { type: 'boolean' },
        collection: { type: 'string' },
        until: { type: 'string' },
      },
      strict: true,
      allowPositionals: true,
    }));
  } catch (error) {
    return { kind: 'refuse', message: `${optionProblem(error instanceof Error ? error.message : String(error))}\n\n${USAGE}` };
  }
  if (values.help === true) return { kind: 'print', text: USAGE };
  if (values.version === true) return { kind: 'print', text: `troupe ${version}\n` };
  const configPath = values['config-path'] as string | undefined;
  const [command, path, ...rest] = words[0] === 'serve' ? words.slice(1) : words;
  if (command === 'restore') return restoreCommand(path, rest, values, configPath);
  for (const name of ['dry-run', 'collection', 'until'])
    if (values[name] !== undefined) return { kind: 'refuse', message: `--${name} is an option of \`troupe restore\`\n\n${USAGE}` };
  if (command === 'verify' && rest.length === 0) return { kind: 'verify', path: path ?? null, unpack: values.unpack === true, configPath };
  if (command !== undefined) {
    const wrong = command === 'verify' ? `verify takes one path, not also '${rest.join(' ')}'` : `there is no command '${command}'`;
    return { kind: 'refuse', message: `${wrong}\n\n${USAGE}` };
  }
  if (values.unpack === true) return { kind: 'refuse', message: `--unpack is an option of \`troupe verify\`\n\n${USAGE}` };
  const restore = startRestore(values);
  if (typeof restore === 'string') return { kind: 'refuse', message: `${restore}\n` };
  const uri = address(values.uri, '--uri', environment, 'SERVICE_URI');
  const bootstrap = address(values.bootstrap, '--bootstrap', environment, 'SERVICE_BOOTSTRAP');
  for (const one of [uri, bootstrap]) if (one.problem !== null) return { kind: 'refuse', message: `${one.problem}\n` };
  const cluster = { uri: uri.value, bootstrap: bootstrap.value, reinit: values.reinit === true };
  return { kind: 'serve', configPath, cluster, secured: values.secured === true, restore };
}

function restoreCommand(
  path: string | undefined,
  rest: readonly string[],
  values: Readonly<Record<string, unknown>>,
  configPath: string | undefined,
): Command {
  if (path === undefined || rest.length > 0) return { kind: 'refuse', message: `restore takes the path of one snapshot\n\n${USAGE}` };
  const other = ['snapshot', 'storage-snapshot', 'uri', 'bootstrap', 'reinit', 'secured', 'unpack'].find(
    (name) => values[name] !== undefined,
  );
  if (other !== undefined) return { kind: 'refuse', message: `--${other} is no option of \`troupe restore\`\n\n${USAGE}` };
  const until = values.until as string | undefined;
  const micros = until === undefined ? null : parseDatetime(until);
  if (micros === undefined) return { kind: 'refuse', message: `--until: '${until}' is no time such as 2026-11-25T19:00:00Z\n` };
  return {
    kind: 'restore',
    path,
    collection: (values.collection ?? null) as string | null,
    force: isForced(values),
    untilMs: micros === null ? null : Math.floor(micros / 1000),
    dryRun: values['dry-run'] === true,
    configPath,
  };
}

function isForced(values: Readonly<Record<string, unknown>>): boolean {
  return values.force_snapshot === true || values['force-snapshot'] === true;
}

/** The snapshots to restore; null: none. A text says what is wrong. */
function startRestore(values: Readonly<Record<string, unknown>>): StartRestore | string | null {
  const given = (values.snapshot ?? []) as readonly string[];
  const storage = (values['storage-snapshot'] ?? null) as string | null;
  const force = isForced(values);
  if (storage !== null && given.length > 0) return '--storage-snapshot: it restores all collections; leave out --snapshot';
  const collections: { file: string; collection: string }[] = [];
  for (const text of given) {
    const at = text.lastIndexOf(':');
    const [file, collection] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)];
    if (file === '' || collection === '') return `--snapshot: '${text}' is not <file>:<collection>`;
    if (collections.some((one) => one.collection === collection)) return `--snapshot: two snapshots for collection ${collection}`;
    collections.push({ file, collection });
  }
  if (storage === null && collections.length === 0)
    return force ? '--force_snapshot: there is nothing to force; name a snapshot with --snapshot or --storage-snapshot' : null;
  return { collections, storage, force };
}

interface Address {
  readonly source: string;
  readonly value: string | null;
  readonly problem: string | null;
}

/** An address from an option or, without it, from a variable; an empty variable is as good as none. */
function address(option: unknown, name: string, environment: Readonly<Record<string, string | undefined>>, variable: string): Address {
  const source = option === undefined ? variable : name;
  const text = option === undefined ? (environment[variable] ?? '') : String(option);
  if (text === '' && option === undefined) return { source, value: null, problem: null };
  const { uri, problem } = peerUri(text);
  return { source, value: uri, problem: problem === null ? null : `${source}: ${problem}` };
}

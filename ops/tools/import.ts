/** `troupe import`: points of a file, or a whole collection of another server, into a collection. */

import { resolve } from 'node:path';
import { argumentWords, jsonLine, readArguments, wholeNumber } from '../client/arguments.js';
import { CONNECTION_USAGE, withNode } from '../client/connection.js';
import { countText } from '../client/tables.js';
import { type Tool, wrongArguments } from '../client/tool.js';
import { FILE_FORMATS, type FileFormat, type FileOptions, formatOf } from '../transfer/file-source.js';
import { type ImportOptions, type ImportResult, importFile, importFromServer } from '../transfer/run-import.js';

const OPTIONS = {
  format: { type: 'string' },
  id: { type: 'string' },
  'number-rows': { type: 'boolean' },
  'first-id': { type: 'string' },
  vector: { type: 'string', multiple: true },
  payload: { type: 'string', multiple: true },
  payloads: { type: 'string' },
  'shard-key-column': { type: 'string' },
  text: { type: 'string', multiple: true },
  separator: { type: 'string' },
  distance: { type: 'string' },
  'from-collection': { type: 'string' },
  'from-api-key-env': { type: 'string' },
  'from-api-key-file': { type: 'string' },
  'from-ca-cert': { type: 'string' },
  shards: { type: 'string' },
  replicas: { type: 'string' },
  add: { type: 'boolean' },
  batch: { type: 'string' },
  parallel: { type: 'string' },
  rate: { type: 'string' },
  retries: { type: 'string' },
  state: { type: 'string' },
  restart: { type: 'boolean' },
  verify: { type: 'string' },
} as const;

const VERIFICATIONS = ['none', 'sample', 'full'] as const;

export const IMPORT_TOOL: Tool = {
  usage: `Usage: troupe import <collection> <file> [options]
       troupe import <collection> <http://server> [options]

Writes the points of a file, or a whole collection of another server of this API: settings, payload indexes, vectors, payloads, and in the
end its aliases whose names are free here. A collection that is missing is made. An import that was stopped goes on where it was, when the
same command is given again.

  troupe import cities cities.jsonl
  troupe import digits digits.npy --number-rows --distance Euclid --payloads digits.jsonl
  troupe import cities http://other:6333 --from-api-key-env OTHER_KEY --rate 5000

Files (JSONL, CSV, npy, Parquet):
  --format <name>        jsonl, csv, npy or parquet, where the name of the file does not tell
  --id <column>          the column of ids (id): whole numbers or UUIDs
  --number-rows          no column: rows are numbered
  --first-id <n>         from this number on (0)
  --vector <column>      the column of the vector (vector), or <name>=<column> for a named one; may be given again for others
  --payload <column>     a column of the payload; may be given again (all columns that are nothing else, without one)
  --payloads <file>      of npy: lines of JSON with the payload of each row
  --shard-key-column <column>
                         the column of shard keys
  --text <column>        of CSV: values of this column stay texts; may be given again
  --separator <text>     of CSV: between fields (a comma; a tab in .tsv)
  --distance <name>      of a collection that is made: Cosine (the default), Dot, Euclid or Manhattan

Servers:
  --from-collection <name>
                         the name of the collection there, if it is another one
  --from-api-key-file <file>, --from-api-key-env <name>
                         the key or token for that server
  --from-ca-cert <file>  certificates of the authorities to trust for it
  --shards <n>           shards of the collection that is made, instead of as many as there
  --replicas <n>         copies of each shard, instead of as many as there

Both:
  --add                  add to a collection that has points already, which are replaced where ids are equal
  --batch <n>            points of a request (500)
  --parallel <n>         requests at a time (1 from files, where a later row of the same id must win; 2 from servers)
  --rate <n>             points per second at most
  --retries <n>          how often a request is sent again while a node is away or busy (10)
  --state <file>         how far it is (.troupe-import-<collection>.json); removed at the end
  --restart              from the start, whatever the state says
  --verify <how>         sample (the default): counts, and from servers 32 points and queries; full: digests of all points; none

${CONNECTION_USAGE}`,
  run(args, out) {
    const { positionals, values } = readArguments(args, OPTIONS);
    const [collection = '', from = ''] = argumentWords(null, positionals, 'collection', 'file or server');
    const isServer = /^https?:\/\//.test(from);
    const verify = VERIFICATIONS.find((known) => known === (values.verify ?? 'sample'));
    if (verify === undefined) throw wrongArguments(`--verify: '${values.verify}' is none of ${VERIFICATIONS.join(', ')}`);
    const options: ImportOptions = {
      collection,
      add: values.add === true,
      batch: wholeNumber('--batch', values.batch ?? '500', 1),
      parallel: wholeNumber('--parallel', values.parallel ?? (isServer ? '2' : '1'), 1),
      pointsPerSecond: values.rate === undefined ? null : wholeNumber('--rate', values.rate, 1),
      retriesMax: wholeNumber('--retries', values.retries ?? '10'),
      statePath: resolve(values.state ?? `.troupe-import-${collection.replaceAll(/[/\\]/g, '_')}.json`),
      restart: values.restart === true,
      verify,
      tell: (line) => void process.stderr.write(`${line}\n`),
    };
    const end = (result: ImportResult): number => {
      for (const problem of result.problems) options.tell(`not equal: ${problem}`);
      out(values.json === true ? jsonLine(result) : resultText(result));
      return result.problems.length === 0 ? 0 : 1;
    };
    refuseOthers(values, isServer);
    if (!isServer)
      return withNode(values, async (node) => end(await importFile(node, fileOptions(from, values), values.distance ?? 'Cosine', options)));
    const source = {
      url: from,
      'api-key-env': values['from-api-key-env'],
      'api-key-file': values['from-api-key-file'],
      'ca-cert': values['from-ca-cert'],
      timeout: values.timeout,
    };
    return withNode(values, (node) =>
      withNode(
        source,
        async (there) =>
          end(
            await importFromServer(
              node,
              { node: there, name: values['from-collection'] ?? collection },
              {
                ...(values.shards === undefined ? {} : { shard_number: wholeNumber('--shards', values.shards, 1) }),
                ...(values.replicas === undefined ? {} : { replication_factor: wholeNumber('--replicas', values.replicas, 1) }),
              },
              options,
            ),
          ),
        // The key for the target is not for this one.
        { ...process.env, TROUPE_API_KEY: undefined },
      ),
    );
  },
};

const OF_FILES = [
  'format',
  'id',
  'number-rows',
  'first-id',
  'vector',
  'payload',
  'payloads',
  'shard-key-column',
  'text',
  'separator',
  'distance',
];
const OF_SERVERS = ['from-collection', 'from-api-key-env', 'from-api-key-file', 'from-ca-cert', 'shards', 'replicas'];

function refuseOthers(values: Readonly<Record<string, unknown>>, isServer: boolean): void {
  const other = (isServer ? OF_FILES : OF_SERVERS).find((name) => values[name] !== undefined);
  if (other !== undefined) throw wrongArguments(`--${other} is for ${isServer ? 'files' : 'servers'}`);
}

interface FileValues {
  readonly format?: string | undefined;
  readonly id?: string | undefined;
  readonly 'number-rows'?: boolean | undefined;
  readonly 'first-id'?: string | undefined;
  readonly vector?: readonly string[] | undefined;
  readonly payload?: readonly string[] | undefined;
  readonly payloads?: string | undefined;
  readonly 'shard-key-column'?: string | undefined;
  readonly text?: readonly string[] | undefined;
  readonly separator?: string | undefined;
}

function fileOptions(path: string, values: FileValues): FileOptions {
  const format: FileFormat | null =
    values.format === undefined ? formatOf(path) : (FILE_FORMATS.find((known) => known === values.format) ?? null);
  if (format === null) throw wrongArguments(`--format: one of ${FILE_FORMATS.join(', ')}`);
  const isNumbered = values['number-rows'] === true || format === 'npy' || values['first-id'] !== undefined;
  if (isNumbered && values.id !== undefined) throw wrongArguments('--id: rows are numbered');
  const separator = values.separator ?? (path.endsWith('.tsv') ? '\t' : ',');
  if ([...separator].length !== 1) throw wrongArguments('--separator: one character');
  return {
    path,
    format,
    separator,
    texts: new Set(values.text ?? []),
    payloads: values.payloads ?? null,
    mapping: {
      id: isNumbered ? null : (values.id ?? 'id'),
      firstId: wholeNumber('--first-id', values['first-id'] ?? '0'),
      vectors: values.vector?.map(vectorColumn) ?? null,
      shardKey: values['shard-key-column'] ?? null,
      payload: values.payload ?? null,
    },
  };
}

function vectorColumn(text: string): { name: string; column: string } {
  const at = text.indexOf('=');
  return at < 0 ? { name: '', column: text } : { name: text.slice(0, at), column: text.slice(at + 1) };
}

function resultText({ aliases, before, collection, digests, points, problems, seconds, total }: ImportResult): string {
  const rate = seconds > 0 ? `, ${countText(Math.round(points / seconds))} points/s` : '';
  const earlier = before > 0 ? ` (${countText(before)} before)` : '';
  return [
    `${collection}: ${countText(points)} points were written${earlier} in ${seconds.toFixed(1)} s${rate}; it has ${countText(total)}\n`,
    digests === null ? '' : `digests: ${digests.source} at the source, ${digests.target} here\n`,
    aliases.length === 0 ? '' : `aliases: ${aliases.join(', ')}\n`,
    problems.length === 0 ? '' : `${problems.length} differences were found\n`,
  ].join('');
}

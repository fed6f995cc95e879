/** `troupe collections`: the collections of a node. */

import type { BodyOf, ResultOf } from '../../protocols/openapi/operations.js';
import {
  argumentWords,
  confirm,
  jsonLine,
  jsonOption,
  readArguments,
  standardInput,
  wholeNumber,
  wrongAction,
} from '../client/arguments.js';
import { apiPath, CONNECTION_USAGE, type NodeConnection, withNode } from '../client/connection.js';
import { listingText, tableText } from '../client/tables.js';
import { EXIT, type Tool, ToolError, wrongArguments } from '../client/tool.js';

type Info = ResultOf<'get_collection'>;

const OPTIONS = {
  size: { type: 'string' },
  distance: { type: 'string' },
  sparse: { type: 'string', multiple: true },
  shards: { type: 'string' },
  replicas: { type: 'string' },
  body: { type: 'string' },
  'if-missing': { type: 'boolean' },
  names: { type: 'boolean' },
  yes: { type: 'boolean' },
} as const;

export const COLLECTIONS_TOOL: Tool = {
  usage: `Usage: troupe collections list [--names]
       troupe collections show <name>
       troupe collections create <name> (--size <n> | --sparse <name> | --body <json>) [options]
       troupe collections delete <name> [--yes]

Shows, makes and deletes collections:

  troupe collections create cities --size 4 --distance Cosine

Options:
  --names                of list: names alone, one a line
  --size <n>             numbers of a vector
  --distance <name>      Cosine (the default), Dot, Euclid or Manhattan
  --sparse <name>        a sparse vector of this name, weighed by idf, for texts; may be given again for others
  --shards <n>           number of shards
  --replicas <n>         number of copies of each shard
  --body <json>          all settings, as the API takes them; - reads them from standard input
  --if-missing           leave a collection that is there as it is
  --yes                  delete without a question

${CONNECTION_USAGE}`,
  run(args, out) {
    const { positionals, values } = readArguments(args, OPTIONS);
    const [action, ...rest] = positionals;
    const asJson = values.json === true;
    return withNode(values, async (node) => {
      switch (action) {
        case 'list':
        case undefined: {
          argumentWords('list', rest);
          await list(node, out, values.names === true, asJson);
          return 0;
        }
        case 'show': {
          const [name = ''] = argumentWords(action, rest, 'name');
          const info = await node.result<Info>('GET', apiPath`/collections/${name}`);
          out(asJson ? jsonLine(info) : listingText(info));
          return 0;
        }
        case 'create': {
          const [name = ''] = argumentWords(action, rest, 'name');
          const body = await createBody(values);
          if (values['if-missing'] === true) {
            const { exists } = await node.result<ResultOf<'collection_exists'>>('GET', apiPath`/collections/${name}/exists`);
            if (exists) {
              out(asJson ? jsonLine(false) : `${name} is there already\n`);
              return 0;
            }
          }
          const made = await node.result<boolean>('PUT', apiPath`/collections/${name}`, body);
          out(asJson ? jsonLine(made) : `${name} was made\n`);
          return 0;
        }
        case 'delete': {
          const [name = ''] = argumentWords(action, rest, 'name');
          await confirm(`Delete the collection ${name} at ${node.url} with all of its points?`, values.yes === true);
          const wasThere = await node.result<boolean>('DELETE', apiPath`/collections/${name}`);
          if (!wasThere) throw new ToolError(`there is no collection ${name}`, EXIT.refused);
          out(asJson ? jsonLine(true) : `${name} was deleted\n`);
          return 0;
        }
        default:
          throw wrongAction(action, 'list', 'show', 'create', 'delete');
      }
    });
  },
};

/** So many collections are asked for at a time. */
const AT_A_TIME = 8;

async function list(node: NodeConnection, out: (text: string) => void, namesOnly: boolean, asJson: boolean): Promise<void> {
  const { collections } = await node.result<ResultOf<'get_collections'>>('GET', '/collections');
  const names = collections.map(({ name }) => name).sort();
  if (namesOnly) {
    out(asJson ? jsonLine(names) : names.map((name) => `${name}\n`).join(''));
    return;
  }
  const rows: (readonly [string, Info | null])[] = [];
  for (let at = 0; at < names.length; at += AT_A_TIME) {
    const some = names.slice(at, at + AT_A_TIME);
    rows.push(
      ...(await Promise.all(some.map(async (name) => [name, await node.found<Info>('GET', apiPath`/collections/${name}`)] as const))),
    );
  }
  // One that was deleted meanwhile is none.
  const there = rows.flatMap(([name, info]) => (info === null ? [] : [{ name, info }]));
  if (asJson) out(jsonLine(there.map(({ name, info }) => ({ name, ...info }))));
  else
    out(
      tableText(
        ['name', 'status', 'points', 'indexed', 'segments', 'shards', 'vectors'],
        there.map(({ name, info }) => [
          name,
          info.status,
          info.points_count ?? 0,
          info.indexed_vectors_count ?? 0,
          info.segments_count,
          info.config.params.shard_number ?? 1,
          vectorsText(info),
        ]),
      ),
    );
}

/** `4 Cosine`, or vectors by name: `title 4 Cosine, words sparse`. */
function vectorsText({ config }: Info): string {
  const { sparse_vectors: sparse, vectors } = config.params as {
    readonly vectors?: Record<string, unknown> | null;
    readonly sparse_vectors?: Record<string, unknown> | null;
  };
  const dense = vectors ?? {};
  const params = ({ distance, size }: { size?: unknown; distance?: unknown }): string => `${size} ${distance}`;
  const named =
    typeof dense.size === 'number' ? [params(dense)] : Object.entries(dense).map(([name, one]) => `${name} ${params(one as object)}`);
  return [...named, ...Object.keys(sparse ?? {}).map((name) => `${name} sparse`)].join(', ');
}

interface CreateValues {
  readonly size?: string | undefined;
  readonly distance?: string | undefined;
  readonly sparse?: readonly string[] | undefined;
  readonly shards?: string | undefined;
  readonly replicas?: string | undefined;
  readonly body?: string | undefined;
}

async function createBody(values: CreateValues): Promise<BodyOf<'create_collection'> | unknown> {
  const { body, distance, replicas, shards, size, sparse } = values;
  if (body !== undefined) {
    const other = Object.entries({ distance, replicas, shards, size, sparse }).find(([, value]) => value !== undefined);
    if (other !== undefined) throw wrongArguments(`--${other[0]}: --body has all settings`);
    return jsonOption('--body', body === '-' ? await standardInput() : body, '{"vectors": {"size": 4, "distance": "Cosine"}}');
  }
  if (size === undefined && sparse === undefined) throw wrongArguments('create: --size, --sparse or --body says what vectors it has');
  return {
    ...(size === undefined ? {} : { vectors: { size: wholeNumber('--size', size, 1), distance: distance ?? 'Cosine' } }),
    ...(sparse === undefined ? {} : { sparse_vectors: Object.fromEntries(sparse.map((name) => [name, { modifier: 'idf' }])) }),
    ...(shards === undefined ? {} : { shard_number: wholeNumber('--shards', shards, 1) }),
    ...(replicas === undefined ? {} : { replication_factor: wholeNumber('--replicas', replicas, 1) }),
  };
}

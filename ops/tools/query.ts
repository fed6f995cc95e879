/** `troupe query`: the points nearest to a vector, a point or a text. */

import type { ResultOf } from '../../protocols/openapi/operations.js';
import { argumentWords, jsonLine, jsonOption, pointId, readArguments, standardInput, wholeNumber } from '../client/arguments.js';
import { apiPath, CONNECTION_USAGE, withNode } from '../client/connection.js';
import { type Tool, wrongArguments } from '../client/tool.js';
import { pointsTable } from './points-shown.js';

export const QUERY_OPTIONS = {
  vector: { type: 'string' },
  id: { type: 'string' },
  text: { type: 'string' },
  model: { type: 'string' },
  using: { type: 'string' },
  filter: { type: 'string' },
  limit: { type: 'string' },
  exact: { type: 'boolean' },
  'with-vector': { type: 'boolean' },
  'shard-key': { type: 'string' },
  body: { type: 'string' },
} as const;

export const QUERY_OPTIONS_USAGE = `  --vector <json>        nearest to this vector: [0.2, 0.1, 0.9, 0.7], or {"indices": [1, 7], "values": [0.5, 0.2]}
  --id <id>              nearest to this point
  --text <text>          by words, where the collection has a sparse vector of texts
  --model <name>         what makes a vector of the text (bm25)
  --using <name>         the name of the vector to search by
  --filter <json>        points that pass, as the API takes filters
  --limit <n>            so many points at most (10)
  --exact                compare with all vectors, without a graph
  --with-vector          vectors, too
  --shard-key <key>      in a collection with shard keys: points of this one
  --body <json>          the whole request, as the API takes it; - reads it from standard input
`;

export const QUERY_TOOL: Tool = {
  usage: `Usage: troupe query <collection> (--vector <json> | --id <id> | --text <text> | --body <json>) [options]

Finds points:

  troupe query cities --vector '[0.2, 0.1, 0.9, 0.7]' --limit 3
  troupe query notes --text 'a flying swallow' --using words

Options:
${QUERY_OPTIONS_USAGE}
${CONNECTION_USAGE}`,
  run(args, out) {
    const { positionals, values } = readArguments(args, QUERY_OPTIONS);
    const [collection = ''] = argumentWords(null, positionals, 'collection');
    return withNode(values, async (node) => {
      const path = apiPath`/collections/${collection}/points/query`;
      const result = await node.result<ResultOf<'query_points'>>('POST', path, await queryBody(values));
      out(values.json === true ? jsonLine(result) : pointsTable(result.points, process.stdout.columns));
      return 0;
    });
  },
};

export interface QueryValues {
  readonly vector?: string | undefined;
  readonly id?: string | undefined;
  readonly text?: string | undefined;
  readonly model?: string | undefined;
  readonly using?: string | undefined;
  readonly filter?: string | undefined;
  readonly limit?: string | undefined;
  readonly exact?: boolean | undefined;
  readonly 'with-vector'?: boolean | undefined;
  readonly 'shard-key'?: string | undefined;
  readonly body?: string | undefined;
}

/** Errors: ToolError. */
export async function queryBody(values: QueryValues): Promise<object> {
  const { body, exact, filter, id, limit, model, text, using, vector } = values;
  const given = [vector, id, text, body].filter((one) => one !== undefined);
  if (given.length !== 1) throw wrongArguments('one of --vector, --id, --text and --body');
  if (model !== undefined && text === undefined) throw wrongArguments('--model goes with --text');
  if (body !== undefined) return jsonOption('--body', body === '-' ? await standardInput() : body, '{"query": [0.2, 0.1]}') as object;
  const query =
    vector !== undefined ? jsonOption('--vector', vector, '[0.2, 0.1]') : id !== undefined ? pointId(id) : { text, model: model ?? 'bm25' };
  return {
    query,
    limit: limit === undefined ? 10 : wholeNumber('--limit', limit, 1),
    with_payload: true,
    with_vector: values['with-vector'] === true,
    ...(using === undefined ? {} : { using }),
    ...(filter === undefined ? {} : { filter: jsonOption('--filter', filter, '{"must": []}') }),
    ...(exact === true ? { params: { exact: true } } : {}),
    ...(values['shard-key'] === undefined ? {} : { shard_key: values['shard-key'] }),
  };
}

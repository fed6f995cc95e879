/** `troupe points`: points of a collection. */

import type { ResultOf } from '../../protocols/openapi/operations.js';
import { argumentWords, confirm, jsonLine, jsonOption, pointId, readArguments, wholeNumber, wrongAction } from '../client/arguments.js';
import { apiPath, CONNECTION_USAGE, type NodeConnection, withNode } from '../client/connection.js';
import { countText } from '../client/tables.js';
import { EXIT, type Tool, ToolError, wrongArguments } from '../client/tool.js';
import { pointsTable } from './points-shown.js';
import { upsertLines } from './upsert-lines.js';

const OPTIONS = {
  filter: { type: 'string' },
  limit: { type: 'string' },
  offset: { type: 'string' },
  all: { type: 'boolean' },
  'with-vector': { type: 'boolean' },
  'shard-key': { type: 'string' },
  file: { type: 'string' },
  yes: { type: 'boolean' },
} as const;

const LIMIT = 10;
const PAGE = 1000;
const FILTER_EXAMPLE = '{"must": [{"key": "city", "match": {"value": "Berlin"}}]}';

export const POINTS_TOOL: Tool = {
  usage: `Usage: troupe points get <collection> <id> …
       troupe points scroll <collection> [--filter <json>] [--limit <n> | --all] [--offset <id>]
       troupe points count <collection> [--filter <json>]
       troupe points upsert <collection> [--file <file>]
       troupe points delete <collection> (<id> … | --filter <json>) [--yes]

Shows, counts, writes and deletes points. Upsert reads a point a line:

  echo '{"id": 1, "vector": [0.05, 0.61, 0.76, 0.74], "payload": {"city": "Berlin"}}' | troupe points upsert cities
  troupe points scroll cities --filter '${FILTER_EXAMPLE}'

Options:
  --filter <json>        points that pass, as the API takes filters
  --limit <n>            so many points at most (10)
  --all                  all points, a line of JSON for each
  --offset <id>          from this id on
  --with-vector          vectors, too
  --shard-key <key>      in a collection with shard keys: points of this one
  --file <file>          of upsert: read the file instead of standard input
  --yes                  delete by a filter without a question

${CONNECTION_USAGE}`,
  run(args, out) {
    const { positionals, values } = readArguments(args, OPTIONS);
    const [action, ...rest] = positionals;
    const asJson = values.json === true;
    const withVector = values['with-vector'] === true;
    const shard = values['shard-key'] === undefined ? {} : { shard_key: values['shard-key'] };
    const filter = values.filter === undefined ? {} : { filter: jsonOption('--filter', values.filter, FILTER_EXAMPLE) };
    const show = (points: readonly ShownRecord[]): void => out(asJson ? jsonLine(points) : pointsTable(points, process.stdout.columns));
    return withNode(values, async (node) => {
      switch (action) {
        case 'get': {
          const [collection = '', ...ids] = rest;
          if (ids.length === 0) throw wrongArguments('get: <collection> <id> …');
          const body = { ids: ids.map(pointId), with_payload: true, with_vector: withVector, ...shard };
          const points = await node.result<ResultOf<'get_points'>>('POST', apiPath`/collections/${collection}/points`, body);
          show(points);
          if (points.length < new Set(ids).size) throw new ToolError(`${points.length} of ${ids.length} points are there`, EXIT.refused);
          return 0;
        }
        case 'scroll': {
          const [collection = ''] = argumentWords(action, rest, 'collection');
          const offset = values.offset === undefined ? {} : { offset: pointId(values.offset) };
          const body = { with_payload: true, with_vector: withVector, ...filter, ...offset, ...shard };
          if (values.all === true) {
            await scrollAll(node, collection, body, out);
            return 0;
          }
          const limit = values.limit === undefined ? LIMIT : wholeNumber('--limit', values.limit, 1);
          const page = await scroll(node, collection, { ...body, limit });
          if (asJson) out(jsonLine(page));
          else {
            show(page.points);
            if (page.next_page_offset != null) out(`… more from --offset ${page.next_page_offset} on\n`);
          }
          return 0;
        }
        case 'count': {
          const [collection = ''] = argumentWords(action, rest, 'collection');
          const path = apiPath`/collections/${collection}/points/count`;
          const result = await node.result<ResultOf<'count_points'>>('POST', path, { exact: true, ...filter, ...shard });
          out(asJson ? jsonLine(result) : `${countText(result.count)}\n`);
          return 0;
        }
        case 'upsert': {
          const [collection = ''] = argumentWords(action, rest, 'collection');
          const points = await upsertLines(node, collection, values.file ?? null, shard);
          out(asJson ? jsonLine({ points }) : `${countText(points)} points were written\n`);
          return 0;
        }
        case 'delete': {
          const [collection = '', ...ids] = rest;
          if (collection === '') throw wrongArguments('delete: <collection> is missing');
          if (ids.length > 0 === (values.filter !== undefined)) throw wrongArguments('delete: ids, or --filter');
          if (ids.length === 0)
            await confirm(`Delete all points of ${collection} at ${node.url} that pass the filter?`, values.yes === true);
          const body = ids.length > 0 ? { points: ids.map(pointId), ...shard } : { ...filter, ...shard };
          const path = apiPath`/collections/${collection}/points/delete?wait=true`;
          const result = await node.result<ResultOf<'delete_points'>>('POST', path, body);
          out(asJson ? jsonLine(result) : `${result.status}\n`);
          return 0;
        }
        default:
          throw wrongAction(action, 'get', 'scroll', 'count', 'upsert', 'delete');
      }
    });
  },
};

type ShownRecord = ResultOf<'scroll_points'>['points'][number];

function scroll(node: NodeConnection, collection: string, body: object): Promise<ResultOf<'scroll_points'>> {
  return node.result('POST', apiPath`/collections/${collection}/points/scroll`, body);
}

async function scrollAll(node: NodeConnection, collection: string, body: object, out: (text: string) => void): Promise<void> {
  let offset: object = {};
  for (;;) {
    const { next_page_offset: next, points } = await scroll(node, collection, { ...body, limit: PAGE, ...offset });
    out(points.map(jsonLine).join(''));
    if (next == null) return;
    offset = { offset: next };
  }
}

/** `troupe export`: points of a collection as a file. */

import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import type { ResultOf } from '../../protocols/openapi/operations.js';
import { argumentWords, jsonLine, jsonOption, readArguments, wholeNumber } from '../client/arguments.js';
import { apiPath, CONNECTION_USAGE, withNode } from '../client/connection.js';
import { ProgressBar } from '../client/progress.js';
import { countText } from '../client/tables.js';
import { type Tool, wrongArguments } from '../client/tool.js';
import { storedVectors } from '../transfer/collection-copy.js';
import { formatOf } from '../transfer/file-source.js';
import { openParquetWriter, type WrittenPoint } from '../transfer/parquet.js';
import { readAhead } from '../transfer/point-source.js';
import { openServerSource, shardKeysOf } from '../transfer/server-source.js';

const RETRIES_MAX = 10;

export const EXPORT_TOOL: Tool = {
  usage: `Usage: troupe export <collection> <file> [options]

Writes the points of a collection to a file that \`troupe import\` reads: JSONL (.jsonl, or - for standard output) or Parquet (.parquet). In
Parquet, dense vectors are lists of floats, payloads and other vectors are JSON.

  troupe export cities cities.parquet --filter '{"must": [{"key": "people", "range": {"gt": 1000000}}]}'

Options:
  --format <name>        jsonl or parquet, where the name of the file does not tell
  --filter <json>        points that pass, as the API takes filters
  --no-vectors           ids and payloads alone
  --batch <n>            points of a request (500)

${CONNECTION_USAGE}`,
  run(args, out) {
    const { positionals, values } = readArguments(args, {
      format: { type: 'string' },
      filter: { type: 'string' },
      'no-vectors': { type: 'boolean' },
      batch: { type: 'string' },
    });
    const [collection = '', path = ''] = argumentWords(null, positionals, 'collection', 'file');
    const format = values.format ?? (path === '-' ? 'jsonl' : formatOf(path));
    if (format !== 'jsonl' && format !== 'parquet') throw wrongArguments('--format: jsonl or parquet');
    if (format === 'parquet' && path === '-') throw wrongArguments('a Parquet file has a name');
    const withVectors = values['no-vectors'] !== true;
    const filter = values.filter === undefined ? undefined : jsonOption('--filter', values.filter, '{"must": []}');
    const batch = wholeNumber('--batch', values.batch ?? '500', 1);
    return withNode(values, async (node) => {
      const { config } = await node.result<ResultOf<'get_collection'>>('GET', apiPath`/collections/${collection}`);
      const keys = (await shardKeysOf(node, collection)).map(({ key }) => key);
      let bar: ProgressBar | null = null;
      const onRetry = (why: string, pauseMs: number): void => {
        bar?.clear();
        process.stderr.write(`${why}; again in ${(pauseMs / 1000).toFixed(1)} s\n`);
      };
      const source = await openServerSource(node, collection, keys, { filter, withVectors, retriesMax: RETRIES_MAX, onRetry });
      bar = new ProgressBar(collection, 'points', source.total);
      // The file has its name when it is whole.
      const part = `${path}.part`;
      const writer =
        format === 'parquet'
          ? await openParquetWriter(part, withVectors ? storedVectors(config) : [], keys.length > 0)
          : openLines(path === '-' ? process.stdout : createWriteStream(part));
      let points = 0;
      for await (const slice of readAhead(source.slices(null, batch))) {
        if (slice.shardKey !== null) for (const point of slice.points) Object.assign(point, { shard_key: slice.shardKey });
        await writer.write(slice.points as readonly WrittenPoint[]);
        points += slice.points.length;
        bar.show(points);
      }
      await writer.end();
      if (path !== '-') await rename(part, path);
      bar.end(points);
      const text = values.json === true ? jsonLine({ file: path, points }) : `${path}: ${countText(points)} points\n`;
      if (path === '-') process.stderr.write(text);
      else out(text);
      return 0;
    });
  },
};

function openLines(file: Writable) {
  let failure: Error | null = null;
  file.on('error', (error) => {
    failure = error;
  });
  return {
    async write(points: readonly WrittenPoint[]): Promise<void> {
      if (failure !== null) throw failure;
      if (!file.write(points.map(jsonLine).join(''))) await once(file, 'drain');
    },
    async end(): Promise<void> {
      if (file === process.stdout) return;
      file.end();
      await once(file, 'close');
      if (failure !== null) throw failure;
    },
  };
}

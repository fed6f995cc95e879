/** Points that come as lines of JSON, from standard input or a file, into a collection. */

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseJson } from '../../protocols/json.js';
import type { NodeConnection } from '../client/connection.js';
import { ProgressBar } from '../client/progress.js';
import { wrongArguments } from '../client/tool.js';
import { PointWriter } from '../transfer/point-writer.js';

const BATCH = 500;
const RETRIES_MAX = 5;

/** The number of points. file: null for standard input. Errors: ToolError, with the number of the line. */
export async function upsertLines(
  node: NodeConnection,
  collection: string,
  file: string | null,
  { shard_key: shardKey }: { readonly shard_key?: string },
): Promise<number> {
  const writer = new PointWriter(node, { collection, pointsPerSecond: null, retriesMax: RETRIES_MAX, onRetry: () => progress.clear() });
  const progress = new ProgressBar(collection, 'points', null);
  let batch: unknown[] = [];
  let points = 0;
  let line = 0;
  const send = async (): Promise<void> => {
    await writer.write(batch, shardKey ?? null);
    points += batch.length;
    batch = [];
    progress.show(points);
  };
  const input = file === null ? process.stdin : createReadStream(file);
  for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    line++;
    if (text.trim() === '') continue;
    batch.push(pointOf(text, line));
    if (batch.length >= BATCH) await send();
  }
  await send();
  progress.end(points);
  return points;
}

function pointOf(text: string, line: number): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw wrongArguments(`line ${line} is no point such as {"id": 1, "vector": [0.1, 0.2]}: ${(error as Error).message}`);
  }
}

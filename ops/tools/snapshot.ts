/** `troupe snapshot`: snapshots of collections and of the whole storage. */

import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ResultOf } from '../../protocols/openapi/operations.js';
import { argumentWords, confirm, jsonLine, readArguments, wrongAction } from '../client/arguments.js';
import { apiPath, CONNECTION_USAGE, type NodeConnection, withNode } from '../client/connection.js';
import { ProgressBar } from '../client/progress.js';
import { bytesText, tableText } from '../client/tables.js';
import { EXIT, type Tool, ToolError, wrongArguments } from '../client/tool.js';

type Snapshot = ResultOf<'create_snapshot'>;

const OPTIONS = {
  to: { type: 'string' },
  from: { type: 'string' },
  priority: { type: 'string' },
  until: { type: 'string' },
  all: { type: 'boolean' },
  yes: { type: 'boolean' },
} as const;

export const SNAPSHOT_TOOL: Tool = {
  usage: `Usage: troupe snapshot create (<collection> | --all)
       troupe snapshot list (<collection> | --all)
       troupe snapshot download (<collection> | --all) <snapshot> [--to <file>]
       troupe snapshot upload <collection> <file> [--priority <name>]
       troupe snapshot restore <collection> --from <url> [--until <time>] [--priority <name>]
       troupe snapshot delete (<collection> | --all) <snapshot> [--yes]

Makes, lists, fetches and restores snapshots of a running node. \`troupe restore\` restores into a node that is stopped.

  troupe snapshot upload cities cities.snapshot

Options:
  --all                  of the whole storage instead of a collection
  --to <file>            where a download goes (its name, in this folder)
  --from <url>           where the node fetches the snapshot: http, https, or file:// of its snapshots folder
  --priority <name>      in a cluster: snapshot (the default here), replica or no_sync
  --until <time>         bring the snapshot on with what the log has up to then, such as 2026-11-25T19:00:00Z
  --yes                  delete without a question

${CONNECTION_USAGE}`,
  run(args, out) {
    const { positionals, values } = readArguments(args, OPTIONS);
    const [action, ...rest] = positionals;
    const asJson = values.json === true;
    const isWhole = values.all === true;
    /** Path of the snapshots, and the words behind the name of the collection. */
    const place = (...names: readonly string[]): readonly [string, string, readonly string[]] => {
      const given = argumentWords(String(action), rest, ...(isWhole ? names : ['collection', ...names]));
      if (isWhole) return ['/snapshots', 'the storage', given];
      const [collection = '', ...more] = given;
      return [apiPath`/collections/${collection}/snapshots`, collection, more];
    };
    return withNode(values, async (node) => {
      switch (action) {
        case 'create': {
          const [path] = place();
          const made = await node.result<Snapshot>('POST', path);
          out(asJson ? jsonLine(made) : `${made.name} (${bytesText(made.size)})\n`);
          return 0;
        }
        case 'list': {
          const [path] = place();
          const snapshots = await node.result<Snapshot[]>('GET', path);
          out(asJson ? jsonLine(snapshots) : snapshotsText(snapshots));
          return 0;
        }
        case 'download': {
          const [path, , [name = '']] = place('snapshot');
          const to = values.to ?? name.replaceAll(/[/\\]/g, '_');
          const bytes = await download(node, `${path}${apiPath`/${name}`}`, to);
          out(asJson ? jsonLine({ file: to, bytes }) : `${to} (${bytesText(bytes)})\n`);
          return 0;
        }
        case 'upload': {
          const [collection = '', file = ''] = argumentWords(action, rest, 'collection', 'file');
          await upload(node, collection, file, values.priority ?? 'snapshot');
          out(asJson ? jsonLine(true) : `${collection} is as in ${file}\n`);
          return 0;
        }
        case 'restore': {
          const [collection = ''] = argumentWords(action, rest, 'collection');
          if (values.from === undefined) throw wrongArguments('restore: --from <url> is missing (`upload` takes a file)');
          const until = values.until === undefined ? {} : { until: values.until };
          const body = { location: values.from, priority: values.priority ?? 'snapshot', ...until };
          const result = await node.result<unknown>('PUT', apiPath`/collections/${collection}/snapshots/recover`, body);
          out(asJson ? jsonLine(result) : `${collection} is as in ${values.from}\n`);
          return 0;
        }
        case 'delete': {
          const [path, what, [name = '']] = place('snapshot');
          await confirm(`Delete the snapshot ${name} of ${what} at ${node.url}?`, values.yes === true);
          await node.result('DELETE', `${path}${apiPath`/${name}`}`);
          out(asJson ? jsonLine(true) : `${name} was deleted\n`);
          return 0;
        }
        default:
          throw wrongAction(action, 'create', 'list', 'download', 'upload', 'restore', 'delete');
      }
    });
  },
};

function snapshotsText(snapshots: readonly Snapshot[]): string {
  return tableText(
    ['name', 'size', 'made (UTC)', 'SHA-256'],
    snapshots.map(({ checksum, creation_time: made, name, size }) => [name, bytesText(size), made ?? '', checksum ?? '']),
  );
}

/** Number of bytes. The file is there when it is whole. */
async function download(node: NodeConnection, path: string, to: string): Promise<number> {
  const response = await node.download(path);
  const length = Number(response.headers['content-length'] ?? Number.NaN);
  const progress = new ProgressBar('download', 'bytes', Number.isNaN(length) ? null : length);
  const part = `${to}.part`;
  let bytes = 0;
  try {
    const counted = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        progress.show(bytes);
        yield chunk;
      }
    };
    await pipeline(response, counted, createWriteStream(part));
    if (!Number.isNaN(length) && bytes !== length) throw new Error(`${bytes} of ${length} bytes came`);
    await rename(part, to);
  } catch (error) {
    progress.clear();
    await rm(part, { force: true });
    throw new ToolError(`${to}: ${(error as Error).message}`, EXIT.refused);
  }
  progress.end(bytes);
  return bytes;
}

async function upload(node: NodeConnection, collection: string, file: string, priority: string): Promise<void> {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) throw wrongArguments(`there is no file ${file}`);
  const boundary = 'snapshot-of-a-collection-8f1c2c5e9b';
  const head = Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="snapshot"; filename="upload.snapshot"\r\ncontent-type: application/octet-stream\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  const progress = new ProgressBar('upload', 'bytes', size);
  const parts = async function* (): AsyncGenerator<Buffer> {
    yield head;
    let bytes = 0;
    for await (const chunk of createReadStream(file)) {
      bytes += (chunk as Buffer).length;
      progress.show(bytes);
      yield chunk as Buffer;
    }
    progress.end(bytes);
    yield tail;
  };
  await node.upload(`${apiPath`/collections/${collection}/snapshots/upload`}?priority=${encodeURIComponent(priority)}`, {
    bytes: Readable.from(parts()),
    length: head.length + size + tail.length,
    contentType: `multipart/form-data; boundary=${boundary}`,
  });
}

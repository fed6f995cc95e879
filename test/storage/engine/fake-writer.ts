/** A writer's thread that does what the request's `path.do` says, for tests of the pool. It answers a text as the failure of a write. */

import { parentPort } from 'node:worker_threads';
import { NO_TAG } from '../../../protocols/model/shard-log.js';
import type { FromWriter, ReplicaSpec, ReplicaStats, ToWriter, WrittenTags } from '../../../storage/threads/messages.js';

const post = (message: FromWriter): void => parentPort?.postMessage(message);
const specs = new Map<string, ReplicaSpec>();
const log: string[] = [];
let generation = 0;

const statsOf = (key: string): ReplicaStats => ({
  key,
  points: generation,
  deferredPoints: 0,
  defers: false,
  segments: [],
  fields: new Map(),
  fieldPoints: new Map(),
  appliedOperation: 0,
  queuedOperations: 0,
  commits: 0,
  walBytes: 0,
  database: null,
  lastWriteMs: 0,
  position: { last: NO_TAG, base: NO_TAG },
});

const pause = (): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);

function publish(key: string): void {
  generation++;
  post({
    kind: 'publish',
    spec: specs.get(key) as ReplicaSpec,
    opening: 1,
    openCommit: 1,
    commits: new Int32Array(new SharedArrayBuffer(4)),
    fields: new Map(),
    set: { generation, segments: [] },
  });
  post({ kind: 'published', key, generation });
}

parentPort?.on('message', (message: ToWriter) => {
  switch (message.kind) {
    case 'open':
      if (message.spec.folder === 'broken')
        return post({ kind: 'error', id: message.id, error: { code: 'storage', detail: 'broken' }, stats: null });
      specs.set(message.spec.key, message.spec);
      log.push(`open ${message.spec.key} with ${message.spec.readers} readers`);
      publish(message.spec.key);
      return post({ kind: 'answer', id: message.id, stats: statsOf(message.spec.key) });
    case 'retired':
      return void log.push(`retired ${message.generation}`);
    case 'write': {
      const what = message.write.undecoded?.path.do ?? '';
      if (what === 'crash') process.exit(9);
      if (what === 'pause') pause();
      if (what === 'publish') publish(message.key);
      const text = what === 'log' ? log.join('; ') : what;
      const value: WrittenTags = { tags: [], timeMs: 0, carriedOut: 0, failure: { code: 'storage', detail: text } };
      return post({ kind: 'answer', id: message.id, value, stats: statsOf(message.key) });
    }
    case 'missing':
      pause();
      return post({ kind: 'answer', id: message.id, value: null, stats: null });
    default:
      return post({ kind: 'answer', id: message.id, stats: null });
  }
});

post({ kind: 'ready' });

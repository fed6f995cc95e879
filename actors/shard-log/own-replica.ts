/** Requests to this node's replica, as calls of its engine, begun in the order in which they are made. */

import type { DataAnswer } from '../../cluster/data-messages.js';
import type { Fetch, Fetched, HeardCall, ReadPart } from '../../cluster/replication/messages.js';
import type { LogTag } from '../../protocols/model/shard-log.js';
import type { ReplicaKey } from '../../storage/threads/messages.js';
import type { CopyRoom } from '../context/copy-room.js';
import type { EnginePort } from '../runtime/ports.js';

/** Errors: those of the engine; `outOfDisk` and `outOfMemory` for what this node has no room for. */
export async function callOwnReplica(engine: EnginePort, room: CopyRoom, key: ReplicaKey, call: HeardCall): Promise<DataAnswer> {
  switch (call.kind) {
    case 'append':
      room.requireForEntries(call.entries);
      await engine.append(key, call.previous, call.entries, call.until);
      return done(0);
    case 'position':
      return { kind: 'position', ...(await engine.position(key)) };
    case 'entriesAfter':
      return engine.entriesAfter(key, call.after, call.bytesMax);
    case 'resetLog':
      await engine.resetLog(key, call.at);
      return done(0);
    case 'rewindLog':
      await engine.rewindLog(key, call.to);
      return done(0);
    case 'digest':
      return { kind: 'digest', ...(await engine.digest(key, call.leaders)) };
    case 'replaceBuckets':
      room.require(call.bytes.length);
      return done(await engine.replaceBuckets(key, call.bytes));
    case 'applySettings':
      await engine.applySettings(key, call.operations);
      return done(0);
    default:
      return call satisfies never;
  }
}

export async function fetchFor(engine: EnginePort, key: ReplicaKey, fetch: Fetch): Promise<Fetched> {
  switch (fetch.kind) {
    case 'settings':
      return { kind: 'settings', operations: await engine.settings(key) };
    case 'digest':
      return { kind: 'digest', ...(await engine.digest(key, null)) };
    case 'buckets': {
      const { at, bytes, points } = await engine.bucketPoints(key, fetch.buckets);
      return { kind: 'buckets', at, bytes, points };
    }
    default:
      return fetch satisfies never;
  }
}

export async function readAfter(engine: EnginePort, key: ReplicaKey, after: LogTag, bytesMax: number): Promise<ReadPart> {
  const part = await engine.entriesAfter(key, after, bytesMax);
  return part.kind === 'entries' ? { kind: 'entries', entries: part.entries } : part;
}

function done(changed: number): DataAnswer {
  return { kind: 'done', changed };
}

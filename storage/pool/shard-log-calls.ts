/** `ShardLogPort` as the main thread carries it out: by messages to the replicas' writers. */

import type { LeaderTag, LogReach, LogTag, ShardEntry, TimedWrite } from '../../protocols/model/shard-log.js';
import { TAKES_ROOM } from '../../protocols/model/update.js';
import { addUsage } from '../../protocols/model/usage.js';
import { encodeUpdate, NOTHING } from '../../protocols/update-codec.js';
import { takesRoom } from '../disk/disk-room.js';
import type { DiskRoom } from '../disk/disk-watch.js';
import type { ReplicaKey, ToShardLog, WrittenTags } from '../threads/messages.js';
import type {
  BucketPoints,
  LogPart,
  LogWritten,
  ReplicaCheckpoint,
  ReplicaDigest,
  ShardLogPort,
  ShardPosition,
} from '../threads/shard-log.js';
import type { CallAnswer, WriterPool } from './writer-pool.js';

export class ShardLogCalls implements ShardLogPort {
  /** disk: asked before each write that needs room; undefined: nobody is. */
  constructor(
    private readonly writers: WriterPool,
    private readonly disk: DiskRoom | undefined,
  ) {}

  async write(key: ReplicaKey, as: LeaderTag, asked: TimedWrite): Promise<LogWritten> {
    const { deadlineMs, hops, operations, undecoded, until, usage: measured } = asked;
    if (this.disk !== undefined && needsRoom(asked)) this.disk.require(operations.reduce((sum, { length }) => sum + length, 0));
    const copies = operations.map(undecoded === undefined ? copyOf : givenAway);
    const write: TimedWrite = {
      operations: copies,
      until,
      deadlineMs,
      ...(measured === undefined ? {} : { usage: measured }),
      ...(undecoded === undefined ? {} : { undecoded }),
      ...(hops === undefined ? {} : { hops: [] }),
    };
    const { usage, value } = await this.send(key, { kind: 'write', id: 0, key, as, write }, copies);
    if (usage !== null && measured !== undefined) addUsage(measured, usage);
    const { carriedOut, failure, hop, shape, tags, timeMs } = value as WrittenTags;
    if (hop !== undefined) hops?.push(hop);
    if (undecoded !== undefined && shape !== undefined) undecoded.shape = shape;
    const entries = tags.map((tag, at) => ({
      tag,
      timeMs,
      operation: undecoded !== undefined ? UNSENT : at < carriedOut ? (operations[at] as Uint8Array) : encodeUpdate(NOTHING),
    }));
    return { entries, failure };
  }

  async append(key: ReplicaKey, previous: LogTag, entries: readonly ShardEntry[], until: 'logged' | 'applied'): Promise<LogTag> {
    const copies = entries.map((entry) => ({ ...entry, operation: copyOf(entry.operation) }));
    const bodies = copies.map(({ operation }) => operation);
    const { value } = await this.send(key, { kind: 'append', id: 0, key, previous, entries: copies, until }, bodies);
    return value as LogTag;
  }

  position(key: ReplicaKey): Promise<ShardPosition> {
    return this.ask(key, { kind: 'position', id: 0, key });
  }

  entriesAfter(key: ReplicaKey, after: LogTag, bytesMax: number): Promise<LogPart> {
    return this.ask(key, { kind: 'entriesAfter', id: 0, key, after, bytesMax });
  }

  reachOf(key: ReplicaKey, after: LogTag, untilMs: number): Promise<LogReach> {
    return this.ask(key, { kind: 'reachOf', id: 0, key, after, untilMs });
  }

  resetLog(key: ReplicaKey, at: LogTag): Promise<void> {
    return this.ask(key, { kind: 'resetLog', id: 0, key, at });
  }

  rewindLog(key: ReplicaKey, to: LogTag): Promise<void> {
    return this.ask(key, { kind: 'rewindLog', id: 0, key, to });
  }

  digest(key: ReplicaKey, leaders: ReplicaDigest | null): Promise<ReplicaDigest> {
    return this.ask(key, { kind: 'digest', id: 0, key, leaders });
  }

  bucketPoints(key: ReplicaKey, buckets: readonly number[]): Promise<BucketPoints> {
    return this.ask(key, { kind: 'bucketPoints', id: 0, key, buckets });
  }

  async replaceBuckets(key: ReplicaKey, bytes: Uint8Array): Promise<number> {
    const copy = copyOf(bytes);
    const { value } = await this.send(key, { kind: 'replaceBuckets', id: 0, key, bytes: copy }, [copy]);
    return value as number;
  }

  settings(key: ReplicaKey): Promise<readonly Uint8Array[]> {
    return this.ask(key, { kind: 'settings', id: 0, key });
  }

  applySettings(key: ReplicaKey, operations: readonly Uint8Array[]): Promise<void> {
    return this.ask(key, { kind: 'applySettings', id: 0, key, operations });
  }

  checkpoint(key: ReplicaKey, folder: string, isFollowed: boolean): Promise<ReplicaCheckpoint> {
    return this.ask(key, { kind: 'checkpoint', id: 0, key, folder, isFollowed });
  }

  releaseCheckpoint(key: ReplicaKey): Promise<void> {
    return this.ask(key, { kind: 'releaseCheckpoint', id: 0, key });
  }

  private async ask<T>(key: ReplicaKey, message: ToShardLog): Promise<T> {
    const { value } = await this.writers.call(this.writers.openReplicaOf(key), message);
    return value as T;
  }

  /**
   * Sends bytes along, which are given away. The writer alone looks at the deadline: a write that ran into it is not in the log, which
   * whoever keeps the order has to know for sure.
   */
  private send(key: ReplicaKey, message: ToShardLog, bodies: readonly Uint8Array[]): Promise<CallAnswer> {
    const replica = this.writers.openReplicaOf(key);
    const bytes = bodies.reduce((sum, body) => sum + body.length, 0);
    this.writers.checkRoom(replica, bytes);
    return this.writers.call(replica, message, { bytes, transfer: bodies.map((body) => body.buffer as ArrayBuffer) });
  }
}

/** Of an entry that no other replica gets. */
const UNSENT = new Uint8Array(0);

/** Callers keep theirs, to send them on. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

/** The memory of a body goes along as it is, if nothing else is in it. */
function givenAway(body: Uint8Array): Uint8Array {
  return body.byteLength > 0 && body.byteLength === body.buffer.byteLength ? body : copyOf(body);
}

/** Disk-D1 */
function needsRoom({ operations, undecoded }: TimedWrite): boolean {
  if (undecoded !== undefined) return TAKES_ROOM[undecoded.operation];
  return takesRoom(operations);
}

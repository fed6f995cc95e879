/**
 * Exchanges points between replicas: tells other replicas of this one's points, and takes over theirs. Every call runs after everything
 * that is logged has been applied.
 */

import { TroupeError } from '../../protocols/errors.js';
import { invariant } from '../../protocols/invariant.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { isSameTag } from '../../protocols/model/shard-log.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import { decodeUpdate, encodeUpdate } from '../../protocols/update-codec.js';
import type { VectorPlan } from '../segment/layout.js';
import { vectorPlans } from '../segment/plans.js';
import type { BucketPoints, ReplicaDigest } from '../threads/shard-log.js';
import type { WriteAheadLog } from '../wal/wal.js';
import { applyOperation } from './apply.js';
import { decodeBuckets, encodeBuckets } from './bucket-codec.js';
import { PointDigest, type RowChange } from './digest.js';
import type { Operations } from './operations.js';
import { pointsOfBuckets, replaceBuckets } from './replace-buckets.js';
import { equalBuckets, type StaleBuckets, withoutStale } from './stale.js';
import type { Transaction } from './transaction.js';

export interface CopiesHost {
  readonly wal: WriteAheadLog;
  readonly config: CollectionConfig;
  readonly operations: Operations;
  transact<T>(change: (transaction: Transaction) => T): T;
  /** A transaction for reading only. */
  view(): Transaction;
  readonly stale: StaleBuckets;
  /** Notes that this replica leads: others are compared with it. */
  lead(): void;
}

export class Copies {
  /** The digest; null until it is asked for, then kept up to date. */
  private pointDigest: PointDigest | null = null;

  constructor(private readonly host: CopiesHost) {}

  get keepsDigest(): boolean {
    return this.pointDigest !== null;
  }

  /** Takes a committed transaction's changes of live rows. */
  note(changes: readonly RowChange[]): void {
    for (const change of changes) this.pointDigest?.change(change);
  }

  /** See `ShardLogPort.digest`. Errors: `storage`. */
  digest(leaders: ReplicaDigest | null): ReplicaDigest {
    this.host.operations.apply();
    this.pointDigest ??= PointDigest.of(this.host.view().segments);
    const { points } = this.pointDigest;
    const live = this.host.view().segments.reduce((sum, segment) => sum + segment.live - segment.held.size, 0);
    invariant(points === live, 'Op-O4', () => `the digest counts ${points} points, the segments have ${live}`);
    const own = { at: this.host.wal.last, ...this.pointDigest.value() };
    if (leaders === null) this.host.lead();
    else if (this.host.stale !== null && isSameTag(leaders.at, own.at)) this.compared(equalBuckets(own, leaders));
    return own;
  }

  /** Marks equal buckets as not stale: their points are the leader's (Bucket-B1). */
  private compared(equal: Iterable<number>): void {
    this.host.transact((transaction) => {
      transaction.stale = withoutStale(transaction.stale, equal);
    });
  }

  /** See `ShardLogPort.bucketPoints`. Errors: `storage`. */
  bucketPoints(buckets: readonly number[]): BucketPoints {
    this.host.operations.apply();
    this.host.lead();
    const at = this.host.wal.last;
    const now = this.host.view();
    const points = pointsOfBuckets(now.segments, new Set(buckets));
    const bytes = encodeBuckets(at, buckets, this.plans, points, (point) => now.payloadText(point));
    return { at, buckets, points: points.length, bytes };
  }

  /** See `ShardLogPort.replaceBuckets`. Errors: `storage`. */
  replaceBuckets(bytes: Uint8Array): number {
    const passed = decodeBuckets(bytes, this.plans);
    this.host.operations.apply();
    const { last } = this.host.wal;
    if (!isSameTag(passed.at, last))
      throw new TroupeError('conflict', `the points are those after operation ${passed.at.index}, the replica is at ${last.index}`);
    return this.host.transact((transaction) => replaceBuckets(transaction, passed));
  }

  /** See `ShardLogPort.settings`. Errors: `storage`. */
  settings(): Uint8Array[] {
    this.host.operations.apply();
    return this.host
      .view()
      .manifest.fields.map(({ name, schema }) =>
        encodeUpdate({ operation: { kind: 'createFieldIndex', field: name, schema }, chained: false }),
      );
  }

  /** See `ShardLogPort.applySettings`. Errors: `storage`. */
  applySettings(operations: readonly Uint8Array[]): void {
    const decoded = operations.map((bytes) => decodeUpdate(bytes).operation);
    this.host.operations.apply();
    this.host.transact((transaction) => makeSettings(transaction, decoded));
  }

  private get plans(): VectorPlan[] {
    return vectorPlans(this.host.config.params);
  }
}

/** Makes the field indexes that the operations name, and removes all others. */
function makeSettings(transaction: Transaction, operations: readonly UpdateOperation[]): void {
  const wanted = operations.flatMap((operation) => (operation.kind === 'createFieldIndex' ? [operation] : []));
  for (const { name } of transaction.manifest.fields) if (!wanted.some(({ field }) => field === name)) transaction.deleteField(name);
  for (const operation of wanted) applyOperation(transaction, operation, transaction.appliedOperation);
}

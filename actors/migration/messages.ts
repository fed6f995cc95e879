/** What a migration hears and what it causes. */

import type { MigrationPart } from '../../cluster/apply/migration.js';
import type { ReshardingStage } from '../../cluster/state/commands.js';
import type { TransferProgress } from '../../cluster/transfer/progress.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { Leaving } from '../../storage/threads/portion.js';
import type { LeaderAsk, LeaderCall, MigrationWrite } from './ports.js';

/** call: number of the call that it answers, as in the effect that made it. */
export type MigrationMessage =
  /** What is agreed on, at the start and whenever the collection changes; null: the task is over, or another leader's. */
  | { readonly kind: 'agreed'; readonly part: MigrationPart | null; readonly nowMs: number }
  /** Those of the asked peers that know the shard map version, and hold no points back. */
  | { readonly kind: 'informed'; readonly call: number; readonly peers: readonly PeerId[] }
  | { readonly kind: 'indexed'; readonly call: number }
  /** index: of the barrier's entry. */
  | { readonly kind: 'barrierPassed'; readonly call: number; readonly index: number }
  | { readonly kind: 'counted'; readonly call: number; readonly count: number; readonly nowMs: number }
  /** Points that leave the shard. position: index of the last entry that the page takes in. */
  | {
      readonly kind: 'pageRead';
      readonly call: number;
      readonly parts: Leaving['parts'];
      readonly next: PointId | null;
      readonly position: number;
    }
  /** Ids of points here, or of copies in a target: whose shardId says. */
  | {
      readonly kind: 'idsRead';
      readonly call: number;
      readonly shardId: ShardId;
      readonly count: number;
      readonly ids: Uint8Array;
      readonly next: PointId | null;
    }
  /** deletion: of `count` points; null: there are none to be deleted. */
  | {
      readonly kind: 'deletionMade';
      readonly call: number;
      readonly count: number;
      readonly deletion: Uint8Array | null;
      readonly next: PointId | null;
    }
  | { readonly kind: 'written'; readonly call: number }
  | { readonly kind: 'finished'; readonly call: number }
  | { readonly kind: 'failed'; readonly call: number; readonly error: ErrorFacts }
  /** A pause after a failure is over. */
  | { readonly kind: 'retry'; readonly call: number };

export type MigrationEffect =
  /** An `agreed` now and at each change. */
  | { readonly kind: 'watch' }
  | { readonly kind: 'askShardMaps'; readonly call: number; readonly peers: readonly PeerId[]; readonly shardMapVersion: number }
  | { readonly kind: 'copyIndexes'; readonly call: number; readonly target: ShardId }
  | { readonly kind: 'passBarrier'; readonly call: number; readonly to: LeaderCall }
  /** index: of the last entry that the answer has to take in. */
  | { readonly kind: 'read'; readonly call: number; readonly to: LeaderCall; readonly ask: LeaderAsk; readonly index: number }
  | { readonly kind: 'write'; readonly call: number; readonly to: LeaderCall; readonly write: MigrationWrite }
  /** Proposes that the shard is done with the stage. */
  | { readonly kind: 'finish'; readonly call: number; readonly stage: ReshardingStage }
  | { readonly kind: 'retrySoon'; readonly call: number }
  /** attempt: from 1. */
  | { readonly kind: 'retryLater'; readonly call: number; readonly attempt: number }
  /** Null: there is nothing to be shown any more. */
  | { readonly kind: 'show'; readonly progress: TransferProgress | null }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn'; readonly text: string };

/** Which transfers a node carries out: those of the shards that its replicas lead. */

import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { TransferKey } from '../state/commands.js';
import type { ClusterState, TransferRecord } from '../state/state.js';

/** A transfer as this node has to carry it out. One that was restarted, or whose shard has another term, is another run. */
export interface TransferRun {
  readonly collection: string;
  readonly uid: number;
  /** Of the shard: what the run proposes is refused in another one. */
  readonly term: number;
  readonly transfer: TransferRecord;
  /** State of the target when the run began. */
  readonly target: ReplicaState;
  /** The replica that goes is the one that leads: at the end the target leads. */
  readonly handsOver: boolean;
}

/** Runs of this peer by their names, in the order of the state. */
export function wantedRuns(agreed: ClusterState, self: PeerId): Map<string, TransferRun> {
  const runs = new Map<string, TransferRun>();
  for (const [collection, { shards, transfers, uid }] of agreed.collections) {
    for (const transfer of transfers) {
      const shard = shards.get(transfer.shardId);
      const target = shard?.replicas.get(transfer.to);
      // Points of a resharding go between shards, in another way.
      if (shard === undefined || target === undefined || transfer.toShardId !== null) continue;
      if (shard.leader !== self || transfer.to === self) continue;
      const run: TransferRun = { collection, uid, term: shard.term, transfer, target, handsOver: !transfer.sync && transfer.from === self };
      runs.set(runName(run), run);
    }
  }
  return runs;
}

/** The same for the same run only. */
export function runName({ term, transfer, uid }: TransferRun): string {
  return `${uid}.${transfer.shardId}-${transfer.from}-${transfer.to}-${transfer.startedAt}-${term}`;
}

export function keyOf({ from, shardId, to, toShardId }: TransferKey): TransferKey {
  return { shardId, from, to, toShardId };
}

/** Files that are on their way to a replica of this peer. */
export interface IncomingFiles {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  readonly startedAt: number;
}

/** By name. */
export function incomingFiles(agreed: ClusterState, self: PeerId): Map<string, IncomingFiles> {
  const incoming = new Map<string, IncomingFiles>();
  for (const [collection, { shards, transfers, uid }] of agreed.collections) {
    for (const { shardId, startedAt, to } of transfers) {
      if (to !== self || shards.get(shardId)?.replicas.get(to) !== 'PartialSnapshot') continue;
      incoming.set(`${uid}.${shardId}-${startedAt}`, { collection, uid, shardId, startedAt });
    }
  }
  return incoming;
}

/** finished: the target has become Active. restarted: with another method. left: to another leader, or it is another node's to know. */
export type RunOutcome = 'finished' | 'aborted' | 'restarted' | 'left';

/** What a run came to that this peer is to carry out no more. */
export function runOutcomeOf(agreed: ClusterState, { collection, term, transfer, uid }: TransferRun): RunOutcome {
  const record = agreed.collections.get(collection);
  if (record === undefined || record.uid !== uid) return 'aborted';
  const shard = record.shards.get(transfer.shardId);
  const { from, shardId, to, toShardId } = transfer;
  const known = record.transfers.find(
    (other) => other.shardId === shardId && other.from === from && other.to === to && other.toShardId === toShardId,
  );
  if (known !== undefined) return known.startedAt === transfer.startedAt ? 'left' : 'restarted';
  const state = shard?.replicas.get(to);
  if (state === 'Active' || state === 'Listener') return 'finished';
  return shard !== undefined && shard.term !== term ? 'left' : 'aborted';
}

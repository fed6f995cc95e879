/**
 * Announces that a node is about to stop: its replicas become Dead where others are Active, so that these lead and no leader waits for a
 * missing replica. While that is being agreed on, the shards that it leads take no writes; writes under way are answered before.
 */

import type { ReplicaChange } from '../../cluster/state/commands.js';
import { deathsOf } from '../../cluster/state/health.js';
import type { NodeServices } from '../context/services.js';
import type { NodeView } from '../context/view.js';
import type { Assignments } from './assignments.js';
import { isHeldByAll, type ReplicationEntry } from './view.js';

/** Together the longest time in milliseconds that this adds to a stop. */
const PAUSE_MS = 1500;
const PROPOSE_MS = 2000;
/**
 * Wait in milliseconds for a lead that this node has just got, as from a node that stopped before: it first has to find out what the others
 * have.
 */
const HELD_MS = 1000;
const LOOK_MS = 20;
/** Another node may have changed a shard meanwhile, so there are several tries. */
const TRIES = 3;
/** Most changes in one command. The others find out about the rest by its silence, as after a crash. */
const CHANGES_MAX = 2000;

/**
 * Proposes that this node's replicas are Dead. Shards that it leads and whose other replicas may lack acknowledged writes (Log-L9) stay as
 * they are, as no other replica could lead them. Errors: if the change is not agreed on; then the others find out by themselves.
 */
export async function retire(
  { assignments, propose }: Pick<NodeServices, 'assignments' | 'propose'>,
  view: NodeView,
  sleep: (ms: number) => Promise<void>,
): Promise<void> {
  const changes = (): ReplicaChange[] => {
    const { agreed, connected, peerId } = assignments;
    if (agreed === null) return [];
    return deathsOf(
      agreed,
      (_collection, _record, _shardId, peer) => peer === peerId,
      CHANGES_MAX,
      (peer) => connected.has(peer),
    );
  };
  const pauseAll = () => Promise.all(changes().map((change) => pause(view, change)));
  await pauseAll();
  assignments.stayTogether();
  const isKept = (change: ReplicaChange) => !canBeLeft(assignments, view, change);
  for (let waitedMs = 0; waitedMs < HELD_MS && changes().some(isKept); waitedMs += LOOK_MS) await sleep(LOOK_MS);
  for (let tries = 1; ; tries += 1) {
    // A pause ends by itself. Each try begins a new one, so that time spent waiting does not shorten it.
    await pauseAll();
    const left = changes().filter((change) => !isKept(change));
    if (left.length === 0) return;
    try {
      await propose({ kind: 'setReplicaStates', changes: left }, PROPOSE_MS);
      return;
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
}

function canBeLeft(assignments: Assignments, view: NodeView, change: ReplicaChange): boolean {
  if (assignments.of(change)?.leader !== assignments.peerId) return true;
  const status = replicationOf(view, change)?.status();
  return status !== undefined && isHeldByAll(status);
}

/** Pauses a shard. If this node leads it no more, or writes do not end, the leader changes as after a crash. */
async function pause(view: NodeView, change: ReplicaChange): Promise<void> {
  const replication = replicationOf(view, change);
  if (replication?.status().role !== 'Leading') return;
  await replication.actor.ask<true>((caller) => ({ kind: 'pause', caller }), PAUSE_MS).catch(() => {});
}

function replicationOf(view: NodeView, { collection, shardId, uid }: ReplicaChange): ReplicationEntry | undefined {
  const entry = view.collections.get(collection);
  return entry?.belonging?.uid === uid ? entry.replications.get(shardId) : undefined;
}

/**
 * A node that is about to stop says so: its replicas become Dead where others are Active, so that these lead and nobody waits for what is
 * not there. Shards that it leads take no writes while that is agreed on, and what was begun is answered before.
 */

import type { ReplicaChange } from '../../cluster/state/commands.js';
import { deathsOf } from '../../cluster/state/health.js';
import type { NodeServices } from '../context/services.js';
import type { NodeView } from '../context/view.js';
import type { Assignments } from './assignments.js';
import { isHeldByAll, type ReplicationEntry } from './view.js';

/** In all a stop may become so much longer. */
const PAUSE_MS = 1500;
const PROPOSE_MS = 2000;
/** For a lead that has just come, as from a node that stopped before: it finds out first what the others have. */
const HELD_MS = 1000;
const LOOK_MS = 20;
/** Somebody else may have changed a shard meanwhile. */
const TRIES = 3;
/** As many as one agreement may hold; the rest is found to be silent, as after a crash. */
const CHANGES_MAX = 2000;

/**
 * Shards that this node leads, and whose other replicas may lack something that was acknowledged (Log-L9), stay as they are: nobody else
 * could lead them.
 * Errors: where it is not agreed; then the others find out by themselves.
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
    // A pause ends by itself: each try has one, from which no time is missing that was waited for.
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

/** Where it leads no more, or cannot stop, the change of leaders is as after a crash. */
async function pause(view: NodeView, change: ReplicaChange): Promise<void> {
  const replication = replicationOf(view, change);
  if (replication?.status().role !== 'Leading') return;
  await replication.actor.ask<true>((caller) => ({ kind: 'pause', caller }), PAUSE_MS).catch(() => {});
}

function replicationOf(view: NodeView, { collection, shardId, uid }: ReplicaChange): ReplicationEntry | undefined {
  const entry = view.collections.get(collection);
  return entry?.belonging?.uid === uid ? entry.replications.get(shardId) : undefined;
}

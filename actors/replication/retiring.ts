/**
 * A node that is about to stop says so: its replicas become Dead where others are Active, so that these lead and nobody waits for what is
 * not there. Shards that it leads take no writes while that is agreed on, and what was begun is answered before.
 */

import { deathsOf } from '../../cluster/health.js';
import type { ReplicaChange } from '../../cluster/operations.js';
import type { NodeServices } from '../node/services.js';
import type { NodeView } from '../node/view.js';

/** In all a stop may become so much longer. */
const PAUSE_MS = 1500;
const PROPOSE_MS = 2000;
/** Somebody else may have changed a shard meanwhile. */
const TRIES = 3;
/** As many as one agreement may hold; the rest is found to be silent, as after a crash. */
const CHANGES_MAX = 2000;

/** Errors: where it is not agreed; then the others find out by themselves. */
export async function retire({ assignments, propose }: Pick<NodeServices, 'assignments' | 'propose'>, view: NodeView): Promise<void> {
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
  await Promise.all(changes().map((change) => pause(view, change)));
  for (let tries = 1; ; tries += 1) {
    const left = changes();
    if (left.length === 0) return;
    try {
      await propose({ kind: 'setReplicaStates', changes: left }, PROPOSE_MS);
      return;
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
}

/** Where it leads no more, or cannot stop, the change of leaders is as after a crash. */
async function pause(view: NodeView, { collection, shardId, uid }: ReplicaChange): Promise<void> {
  const entry = view.collections.get(collection);
  const replication = entry?.belonging?.uid === uid ? entry.replications.get(shardId) : undefined;
  if (replication?.status().role !== 'Leading') return;
  await replication.actor.ask<boolean>((replyTo) => ({ kind: 'pause', replyTo }), PAUSE_MS).catch(() => {});
}

/**
 * A leader gives its lead to another replica (Log-L10): it stops taking writes, answers those under way, and has the change agreed on. New
 * requests wait on their nodes for the next leader.
 */

import type { DataAnswer, DataCall } from '../../cluster/data-messages.js';
import { errorFacts, outcomeOf, TroupeError } from '../../protocols/errors.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import { isHeldByAll } from './view.js';

/** Milliseconds for writes under way, and for the agreement. A pause lasts three seconds, and longer if it is asked for again. */
const PAUSE_MS = 2500;
const PROPOSE_MS = 2500;

/**
 * Hands the lead to another replica. Errors: `conflict` if another replica leads, or the heir cannot; `busy`, `unavailable`, `timeout` if
 * writes did not end or the change was not agreed on.
 */
export async function handOverShard(
  { assignments, propose }: Pick<NodeServices, 'assignments' | 'propose'>,
  entry: CollectionEntry,
  { term, shard, to }: Extract<DataCall, { kind: 'handOver' }>,
): Promise<DataAnswer> {
  const assignment = assignments.of(shard);
  const replication = entry.replications.get(shard.shardId);
  const leads = assignment?.term === term && assignment.leader === assignments.peerId;
  if (!leads || replication === undefined)
    throw new TroupeError('conflict', `shard ${shard.shardId} of collection ${shard.collection} is not led here in term ${term}`, {
      reason: 'notLeader',
    });
  const { actor } = replication;
  const resume = (error: unknown): never => {
    actor.report({ kind: 'resume' });
    throw error;
  };
  const pause = () => actor.ask<true>((caller) => ({ kind: 'pause', caller }), PAUSE_MS).catch(resume);
  await pause();
  // A new pause, so that the time spent waiting does not shorten the time to agree.
  await pause();
  if (!isHeldByAll(replication.status()))
    resume(
      new TroupeError('conflict', `other replicas of shard ${shard.shardId} of collection ${shard.collection} lack what is acknowledged`),
    );
  const { collection, shardId, uid } = shard;
  const changed = await propose({ kind: 'changeLeader', collection, uid, shardId, to, term }, PROPOSE_MS).catch((error: unknown) => {
    if (outcomeOf(errorFacts(error)) === 'none') return resume(error);
    // The change may still be agreed on: the pause ends by itself.
    throw error;
  });
  return { kind: 'done', changed: changed ? 1 : 0 };
}

/** Puts together what migrations need. */

import { partOf } from '../../cluster/apply/migration.js';
import type { DataAnswer, DataCall, PeerCalls } from '../../cluster/data-messages.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import { decodePortionAnswer, encodePortion } from '../../storage/threads/portion-codec.js';
import type { NodeServices } from '../context/services.js';
import type { Clock } from '../runtime/ports.js';
import type { LeaderAsk, LeaderCall, MigrationPorts, ReadAnswer } from './ports.js';

/** Of a call to a leader. */
const CALL_MS = 60_000;
const INFORMED_MS = 2000;
const FINISH_MS = 10_000;

/** Gives the shard `to` the indexes of payload keys that `from` has. */
export type IndexAs = (collection: string, from: ShardId, to: ShardId) => Promise<void>;

export interface MigrationParts {
  readonly services: Pick<NodeServices, 'assignments' | 'propose'>;
  readonly clock: Clock;
  /** Also for this node itself. */
  readonly callPeer: PeerCalls['call'];
  readonly indexAs: IndexAs;
}

export function migrationPorts({ callPeer, clock, indexAs, services }: MigrationParts): MigrationPorts {
  const { assignments } = services;
  const callLeader = (collection: string, uid: number, shardId: ShardId, call: DataCall): Promise<DataAnswer> => {
    const leader = assignments.of({ collection, uid, shardId })?.leader ?? null;
    if (leader === null) return Promise.reject(new TroupeError('unavailable', `shard ${shardId} of ${collection} has no leader`));
    return callPeer(leader, call, CALL_MS + 1000);
  };
  return {
    watch: (task, changed) => {
      let seen: object | null = null;
      const look = () => {
        const { agreed, peerId } = assignments;
        const record = agreed?.collections.get(task.collection) ?? null;
        if (agreed === null || record === seen) return;
        seen = record;
        changed(partOf(agreed, task, peerId));
      };
      look();
      return assignments.watchAll(look);
    },
    isInformed: async (peer, { collection, uid }, shardMapVersion) => {
      const answer = await callPeer(peer, { kind: 'shardMap', collection, uid }, INFORMED_MS).catch(() => null);
      return answer?.kind === 'shardMap' && answer.shardMapVersion >= shardMapVersion && answer.showsAll;
    },
    copyIndexes: ({ collection, shardId }, target) => indexAs(collection, shardId, target),
    passBarrier: async ({ collection, uid }, { shardId, ...spread }) => {
      const call = { kind: 'barrier', shard: { collection, uid, shardId }, timeoutMs: CALL_MS, ...spread } as const;
      const answer = await callLeader(collection, uid, shardId, call);
      if (answer.kind !== 'barrier') throw unexpected(answer);
      return answer.index;
    },
    read: async <Ask extends LeaderAsk>(
      { collection, uid }: { readonly collection: string; readonly uid: number },
      { shardId, ...spread }: LeaderCall,
      ask: Ask,
      index: number,
    ): Promise<ReadAnswer<Ask>> => {
      const body = encodePortion({ asks: [ask] }).slice();
      const call = { kind: 'read', collection, uid, shards: [shardId], body, timeoutMs: CALL_MS, measured: false, ...spread } as const;
      const answer = await callLeader(collection, uid, shardId, call);
      if (answer.kind !== 'answered') throw unexpected(answer);
      const position = answer.positions[0] as number;
      if (position < index) throw new TroupeError('conflict', `shard ${shardId} of ${collection} has not applied operation ${index} yet`);
      return { answer: decodePortionAnswer(answer.body).answers[0] as ReadAnswer<Ask>['answer'], position };
    },
    write: async ({ collection, uid }, { shardId, ...spread }, { bytes, operation }) => {
      const shard = { collection, uid, shardId };
      const given = { operation, operations: [bytes], until: 'shown', timeoutMs: CALL_MS, measured: false } as const;
      await callLeader(collection, uid, shardId, { kind: 'write', shard, ...given, ...spread });
    },
    finish: async ({ collection, shardId, startedAt, term }, stage) => {
      await services.propose({ kind: 'finishStage', collection, startedAt, stage, shardId, term }, FINISH_MS);
    },
    nowMs: () => clock.nowMs(),
  };
}

function unexpected({ kind }: DataAnswer): Error {
  return new Error(`a peer has answered with ${kind}`);
}

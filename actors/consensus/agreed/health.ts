/**
 * Replicas that cannot do their part become Dead: those of peers that the leader has not heard of for a while, and those of which
 * their own node says so.
 */

import { lacksLeader } from '../../../cluster/apply/leaders.js';
import { deathsOf, type IsLost } from '../../../cluster/state/health.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import type { ConsensusMessage } from '../messages.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { isUnderWay, submit } from '../proposals/proposals.js';
import type { MemberConsensus } from '../state.js';

/** Ticks without a word from a peer. */
export const SILENT_TICKS = 20;
/** A peer that has said nothing for so long may be away as well: nobody becomes Dead for its sake. Followers answer every tick. */
const DOUBTFUL_TICKS = 5;
/** The leader looks at the whole state, and not at each tick. */
const LOOK_TICKS = 5;
const PROPOSAL_TICKS = 50;
/** What is left has its turn afterwards: one proposal of everything could be larger than an entry may be. */
const CHANGES_MAX = 2000;

/** Once a tick. */
export function lookAfter(draft: ConsensusDraft): void {
  noteNewPeers(draft);
  const { raft, ticks, upkeep } = draft.member;
  if (raft.role.kind !== 'Leader') {
    draft.change({ upkeep: { ...upkeep, leadsSinceTick: ticks } });
    return;
  }
  if (ticks % LOOK_TICKS !== 0) return;
  const silent = silentPeers(draft.member);
  const { collections } = draft.member.agreed;
  const doubtful = silent.size === 0 ? silent : silentPeers(draft.member, DOUBTFUL_TICKS);
  const found = `${[...silent].join()} ${[...doubtful].join()}`;
  // Ten thousand collections take a while, and most of the time nothing has changed.
  if (upkeep.wellWith?.collections === collections && upkeep.wellWith.silent === found) return;
  if (silent.size > 0)
    bury(
      draft,
      (_collection, _record, _shardId, peerId) => silent.has(peerId),
      (peerId) => !doubtful.has(peerId),
    );
  if (!isUnderWay(draft, 'election') && [...draft.member.agreed.collections.values()].some(lacksLeader))
    submit(draft, { kind: 'operation', operation: { kind: 'electLeaders' } }, { kind: 'election' }, ticks + PROPOSAL_TICKS);
  if (!isUnderWay(draft, 'health') && !isUnderWay(draft, 'election'))
    draft.change({ upkeep: { ...draft.member.upkeep, wellWith: { collections, silent: found } } });
}

/** Who has just been let in has said nothing yet, and is not silent for that. */
function noteNewPeers(draft: ConsensusDraft): void {
  const { agreed, heardTicks, ticks } = draft.member;
  const added = agreed.membership.filter(({ peerId }) => !heardTicks.has(peerId));
  if (added.length === 0) return;
  draft.change({ heardTicks: new Map([...heardTicks, ...added.map(({ peerId }) => [peerId, ticks] as const)]) });
}

/** What its node says of its own replicas. One that leads, and may be ahead of the others, stays the leader (Log-L9). */
export function noteDeadReplicas(draft: ConsensusDraft, { replicas }: Extract<ConsensusMessage, { kind: 'replicasDied' }>): void {
  const own = draft.member.identity.peerId;
  bury(draft, (collection, { shards, uid }, shardId, peerId) => {
    if (peerId !== own) return false;
    const shard = shards.get(shardId);
    const since = shard?.since.get(own);
    const leads = shard?.leader === own;
    return replicas.some(
      (dead) =>
        dead.collection === collection &&
        dead.uid === uid &&
        dead.shardId === shardId &&
        dead.since === since &&
        !(leads && dead.mayBeAhead),
    );
  });
}

type Heard = Pick<MemberConsensus, 'agreed' | 'heardTicks' | 'identity' | 'raft' | 'ticks' | 'upkeep'>;

/** Peers of which this leader has heard nothing for so many ticks, as far as it has led so long; one that is known to have ended at once. */
export function silentPeers({ agreed, heardTicks, identity, raft, ticks, upkeep }: Heard, silentTicks = SILENT_TICKS): ReadonlySet<PeerId> {
  const silent = new Set<PeerId>();
  for (const { peerId } of agreed.membership) {
    if (peerId === identity.peerId) continue;
    if (peerId === raft.gone || ticks - Math.max(upkeep.leadsSinceTick, heardTicks.get(peerId) ?? ticks) >= silentTicks) silent.add(peerId);
  }
  return silent;
}

function bury(draft: ConsensusDraft, isLost: IsLost, isWell?: (peerId: PeerId) => boolean): void {
  if (isUnderWay(draft, 'health')) return;
  const changes = deathsOf(draft.member.agreed, isLost, CHANGES_MAX, isWell);
  if (changes.length === 0) return;
  const operation = { kind: 'setReplicaStates', changes } as const;
  submit(draft, { kind: 'operation', operation }, { kind: 'health' }, draft.member.ticks + PROPOSAL_TICKS);
}

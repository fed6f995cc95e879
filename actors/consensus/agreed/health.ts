/** Makes replicas Dead: those of peers that the leader has not heard for a while, and those that their own node reports. */

import { lacksLeader } from '../../../cluster/apply/leaders.js';
import { deathsOf, type IsLost } from '../../../cluster/state/health.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import type { ConsensusMessage } from '../messages.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { isUnderWay, submit } from '../proposals/proposals.js';
import type { MemberConsensus } from '../state.js';

/** Ticks without a message after which a peer counts as silent. */
export const SILENT_TICKS = 20;
/**
 * Ticks without a message after which a peer may be away: no replica becomes Dead in favour of one on such a peer. Followers answer every
 * tick.
 */
const DOUBTFUL_TICKS = 5;
/** Ticks between two checks, as each looks at the whole state. */
const LOOK_TICKS = 5;
const PROPOSAL_TICKS = 50;
/** Most changes in one proposal, as an entry has a limit; the rest follows later. */
const CHANGES_MAX = 2000;

/** Checks the health of replicas. Called once a tick. */
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
  // A check of ten thousand collections takes a while, and most of the time nothing has changed.
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

/** Counts new members as heard: they have sent nothing yet and are not silent. */
function noteNewPeers(draft: ConsensusDraft): void {
  const { agreed, heardTicks, ticks } = draft.member;
  const added = agreed.membership.filter(({ peerId }) => !heardTicks.has(peerId));
  if (added.length === 0) return;
  draft.change({ heardTicks: new Map([...heardTicks, ...added.map(({ peerId }) => [peerId, ticks] as const)]) });
}

/** Proposes as Dead the replicas that this node reports. One that leads and may be ahead of the others stays the leader (Log-L9). */
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

/** Peers that this leader has not heard for `silentTicks`, if it has led that long; a peer whose process has ended is silent at once. */
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

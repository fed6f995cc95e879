/** The leader executes plans: draining, moves for balance, and copies where their number is kept. */

import { nextStep } from '../../../cluster/plans/next.js';
import { replacedPeer } from '../../../cluster/plans/replaced.js';
import { silentPeers } from '../agreed/health.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { isUnderWay, proposeMembership, submit } from '../proposals/proposals.js';

/** Ticks between two steps, so that a transfer that fails at once does not start again at once. */
const STEP_TICKS = 10;
const PROPOSAL_TICKS = 50;
/**
 * Ticks of silence after which a peer whose address belongs to another peer now is taken as lost: addresses may be given to other nodes.
 */
const REPLACED_TICKS = 100;
/** Ticks of silence after which copies are made on other peers: five minutes, in which also slow nodes restart. */
const LOST_TICKS = 3000;

/** Takes the next step of the plans. Called once a tick. */
export function maybeGoOnWithPlans(draft: ConsensusDraft): void {
  const { agreed, raft, settings, ticks } = draft.member;
  if (raft.role.kind !== 'Leader' || ticks % STEP_TICKS !== 0 || isUnderWay(draft, 'plan')) return;
  const silent = silentPeers(draft.member);
  const longSilent = silent.size === 0 ? silent : silentPeers(draft.member, REPLACED_TICKS);
  const lost = longSilent.size === 0 ? longSilent : silentPeers(draft.member, LOST_TICKS);
  const replaced = replacedPeer(
    agreed,
    (peerId) => longSilent.has(peerId),
    (peerId) => !silent.has(peerId),
  );
  if (replaced !== null) {
    const operation = { kind: 'markPeer', peerId: replaced, listens: null, leaving: 'drain' } as const;
    submit(draft, { kind: 'operation', operation }, { kind: 'plan' }, ticks + PROPOSAL_TICKS);
    return;
  }
  const limits = { ...settings.transferLimits, method: settings.transferMethod };
  const step = nextStep(
    agreed,
    limits,
    (peerId) => silent.has(peerId),
    (peerId) => lost.has(peerId),
  );
  if (step === null) return;
  const deadlineTick = ticks + PROPOSAL_TICKS;
  if (step.kind === 'operation') submit(draft, step, { kind: 'plan' }, deadlineTick);
  // The last voter must not be removed.
  else if (agreed.membership.some(({ peerId, voter }) => voter && peerId !== step.peerId))
    proposeMembership(draft, { kind: 'remove', peerId: step.peerId }, { kind: 'plan' }, deadlineTick);
}

/** The leader carries out what is planned: draining, moves for balance, and copies where their number is kept. */

import { nextStep } from '../../cluster/plans/next.js';
import type { Draft } from './draft.js';
import { silentPeers } from './health.js';
import { isUnderWay, proposeMembership, submit } from './proposals.js';

/** Ticks between two steps: a transfer that fails at once is not begun again at once. */
const STEP_TICKS = 10;
const PROPOSAL_TICKS = 50;

/** Once a tick. */
export function maybeGoOnWithPlans(draft: Draft): void {
  const { agreed, raft, settings, ticks } = draft.member;
  if (raft.role.kind !== 'Leader' || ticks % STEP_TICKS !== 0 || isUnderWay(draft, 'plan')) return;
  const silent = silentPeers(draft);
  const limits = { ...settings.transferLimits, method: settings.transferMethod };
  const step = nextStep(agreed, limits, (peerId) => silent.has(peerId));
  if (step === null) return;
  const deadlineTick = ticks + PROPOSAL_TICKS;
  if (step.kind === 'operation') submit(draft, step, { kind: 'plan' }, deadlineTick);
  // Without another voter it would be the end of the cluster.
  else if (agreed.membership.some(({ peerId, voter }) => voter && peerId !== step.peerId))
    proposeMembership(draft, { kind: 'remove', peerId: step.peerId }, { kind: 'plan' }, deadlineTick);
}

/** Hands leadership to another voter. Source: dissertation, section 3.10. */

import type { PeerId } from '../../protocols/model/cluster.js';
import { changeLeaderRole, type RaftDraft, sendEarly } from './draft.js';
import { campaign, mayCampaign } from './election.js';
import { lastIndex } from './log.js';
import { isVoter } from './membership.js';

/** Begins to hand leadership over. Proposals are refused until it is done or `electionTicks` have passed. */
export function transferLeadership(draft: RaftDraft, to: PeerId): void {
  const { role, membership, config } = draft.state;
  if (role.kind !== 'Leader' || to === config.peerId || !isVoter(membership, to)) return;
  changeLeaderRole(draft, { transfer: { to, ticksLeft: config.electionTicks } });
  maybeLetSuccessorRun(draft);
}

/** Tells the successor to campaign as soon as it has the whole log. */
export function maybeLetSuccessorRun(draft: RaftDraft): void {
  const { role, log } = draft.state;
  if (role.kind !== 'Leader' || role.transfer === null) return;
  const { to } = role.transfer;
  if (role.progress.get(to)?.matchIndex === lastIndex(log)) sendEarly(draft, to, { kind: 'timeoutNow' });
}

export function tickTransfer(draft: RaftDraft): void {
  const { role } = draft.state;
  if (role.kind !== 'Leader' || role.transfer === null) return;
  const { to, ticksLeft } = role.transfer;
  changeLeaderRole(draft, { transfer: ticksLeft > 1 ? { to, ticksLeft: ticksLeft - 1 } : null });
}

export function receiveTimeoutNow(draft: RaftDraft): void {
  if (draft.state.role.kind === 'Follower' && mayCampaign(draft.state)) campaign(draft, true);
}

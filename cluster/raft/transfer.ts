/** Leadership that is handed to another voter. Source: dissertation, section 3.10. */

import type { PeerId } from '../../protocols/model/cluster.js';
import { changeLeader, type Draft, sendEarly } from './draft.js';
import { campaign, mayCampaign } from './election.js';
import { lastIndex } from './log.js';
import { isVoter } from './membership.js';

/** Proposals are refused until it is done or `electionTicks` have passed. */
export function transferLeadership(draft: Draft, to: PeerId): void {
  const { role, membership, config } = draft.state;
  if (role.kind !== 'Leader' || to === config.peerId || !isVoter(membership, to)) return;
  changeLeader(draft, { transfer: { to, ticksLeft: config.electionTicks } });
  handOver(draft);
}

/** As soon as the successor has the whole log, it may run. */
export function handOver(draft: Draft): void {
  const { role, log } = draft.state;
  if (role.kind !== 'Leader' || role.transfer === null) return;
  const { to } = role.transfer;
  if (role.progress.get(to)?.matchIndex === lastIndex(log)) sendEarly(draft, to, { kind: 'timeoutNow' });
}

export function tickTransfer(draft: Draft): void {
  const { role } = draft.state;
  if (role.kind !== 'Leader' || role.transfer === null) return;
  const { to, ticksLeft } = role.transfer;
  changeLeader(draft, { transfer: ticksLeft > 1 ? { to, ticksLeft: ticksLeft - 1 } : null });
}

export function receiveTimeoutNow(draft: Draft): void {
  if (draft.state.role.kind === 'Follower' && mayCampaign(draft.state)) campaign(draft, true);
}

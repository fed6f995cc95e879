/** A step in progress: the next state, which only this step may still change, and the effects in order. */

import type { ErrorFacts } from '../../protocols/errors.js';
import { BrokenInvariant } from '../../protocols/invariant.js';
import type { Of } from '../../protocols/machine.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { LogCaller, PeerCall, ReplicationEffect, ReplicationInput, ShardAssignment, TransferAnswer } from './messages.js';
import type { Channel, Leading, ReplicationRole, ReplicationState } from './state.js';

export type InputOf<Kind extends ReplicationInput['kind']> = Of<ReplicationInput, Kind>;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

export interface ReplicationDraft {
  readonly state: Mutable<ReplicationState>;
  readonly effects: ReplicationEffect[];
}

export interface ReplicationStep {
  readonly state: ReplicationState;
  readonly effects: readonly ReplicationEffect[];
}

export function beginStep(state: ReplicationState): ReplicationDraft {
  return { state: { ...state }, effects: [] };
}

/** A new number for a role, a call or a job. */
export function nextNumber(draft: ReplicationDraft): number {
  draft.state.counter += 1;
  return draft.state.counter;
}

export function refuse(draft: ReplicationDraft, caller: LogCaller, error: ErrorFacts): void {
  draft.effects.push({ kind: 'refuse', caller, error });
}

export function answer<Answer extends TransferAnswer>(draft: ReplicationDraft, caller: LogCaller<Answer>, value: Answer): void {
  draft.effects.push({ kind: 'answer', caller, answer: value });
}

export function log(draft: ReplicationDraft, level: 'info' | 'warn', text: string): void {
  draft.effects.push({ kind: 'log', level, text });
}

/** Calls another replica for the role `run`, in the shard's term. */
export function callPeer(draft: ReplicationDraft, run: number, peer: PeerId, call: number, request: PeerCall): void {
  const { assignment, self } = draft.state;
  const since = assignment?.since.get(peer) ?? 0;
  draft.effects.push({ kind: 'call', run, peer, call, since, leader: self, term: assignment?.term ?? 0, request });
}

export function setRole(draft: ReplicationDraft, role: ReplicationRole): void {
  draft.state.role = role;
}

/** The assignment of a shard that this replica leads, or is to lead. Errors: `BrokenInvariant` if there is none. */
export function assignmentOf({ state }: ReplicationDraft): ShardAssignment {
  if (state.assignment === null) throw new BrokenInvariant('Log-L2', `a replica is ${state.role.kind} of a shard that is not assigned`);
  return state.assignment;
}

export function leadingOf(draft: ReplicationDraft): Leading {
  const { role } = draft.state;
  if (role.kind !== 'Leading') throw new BrokenInvariant('Log-L13', `a replica that is ${role.kind} does not lead`);
  return role;
}

export function changeLeading(draft: ReplicationDraft, change: Partial<Leading>): void {
  draft.state.role = { ...leadingOf(draft), ...change };
}

export function channelOf(draft: ReplicationDraft, peer: PeerId): Channel | undefined {
  const { role } = draft.state;
  return role.kind === 'Leading' ? role.channels.get(peer) : undefined;
}

export function setChannel(draft: ReplicationDraft, channel: Channel): void {
  changeLeading(draft, { channels: new Map(leadingOf(draft).channels).set(channel.peer, channel) });
}

export function changeChannel(draft: ReplicationDraft, peer: PeerId, change: Partial<Channel>): void {
  const channel = channelOf(draft, peer);
  if (channel !== undefined) setChannel(draft, { ...channel, ...change });
}

export function notLeading(detail: string): ErrorFacts {
  return { code: 'conflict', detail: `${detail}: ask the replica that leads`, retryAfterMs: 100, reason: 'notLeader' };
}

/** The error for a write whose outcome is unknown: the next leader may take it over. */
export function leftOpen(reason: string): ErrorFacts {
  return { code: 'unavailable', detail: reason, retryAfterMs: 1000, outcome: 'unknown' };
}

/** Requests of transfers to the leader, for one replica. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import {
  answer,
  changeChannel,
  channelOf,
  type InputOf,
  leadingOf,
  nextNumber,
  type ReplicationDraft,
  refuse,
  setChannel,
} from './draft.js';
import type { LogCaller } from './messages.js';
import { isAgreedRequired, isRequired, isTarget, mustApply } from './required.js';
import { type Channel, type Job, newChannel } from './state.js';

type WithoutHead<Kind> = Kind extends Job ? Omit<Kind, 'id' | 'fetching' | 'fetched'> : never;

export function attach(draft: ReplicationDraft, { caller, mayReset, peer }: InputOf<'attach'>): void {
  const { assignment } = draft.state;
  if (assignment === null || !(isTarget(assignment, peer) || isAgreedRequired(assignment, peer))) {
    const state = assignment?.replicas.get(peer) ?? 'gone';
    refuse(draft, caller, {
      code: 'unavailable',
      detail: `the replica on peer ${peer} is ${state}: nothing is sent to it`,
      retryAfterMs: 1000,
    });
    return;
  }
  const since = assignment.since.get(peer) ?? 0;
  const channel = channelOf(draft, peer) ?? newChannel(peer, since, null);
  if (channel.attaching !== null || channel.jobs.length > 0 || channel.phase.kind === 'Broken') {
    refuse(draft, caller, { code: 'unavailable', detail: `peer ${peer} is being seen to`, retryAfterMs: 1000 });
    return;
  }
  // The call that is under way ends first.
  const phase = channel.phase.kind === 'Probing' ? channel.phase : ({ kind: 'Probing', position: null } as const);
  setChannel(draft, { ...channel, phase, attaching: { caller, mayReset }, retryAt: 0 });
}

export function compare(draft: ReplicationDraft, { caller, peer }: InputOf<'compare'>): void {
  addJob(draft, peer, { kind: 'compare', caller });
}

export function fill(draft: ReplicationDraft, { buckets, caller, peer }: InputOf<'fill'>): void {
  addJob(draft, peer, { kind: 'fill', caller, buckets });
}

/** Makes the peer required from now on. Answered when everything that is logged by now has arrived there. */
export function require(draft: ReplicationDraft, { caller, peer }: InputOf<'require'>): void {
  const channel = channelOf(draft, peer);
  if (channel?.phase.kind !== 'Streaming') {
    refuse(draft, caller, notAttached(peer));
    return;
  }
  draft.state.required = new Set(draft.state.required).add(peer);
  const waiters = [...channel.waiters, { caller, index: leadingOf(draft).last.index }];
  setChannel(draft, { ...channel, waiters, inherited: false });
  answerWaiters(draft, peer);
}

export function release(draft: ReplicationDraft, { peer }: InputOf<'release'>): void {
  const channel = channelOf(draft, peer);
  if (channel === undefined || isRequired(draft.state, peer)) return;
  endChannel(draft, channel, { code: 'unavailable', detail: `peer ${peer} has been released` });
  changeChannel(draft, peer, { phase: { kind: 'Idle' }, attaching: null, jobs: [], waiters: [], failingSince: null });
}

/** Answers the callers whose operation has arrived. */
export function answerWaiters(draft: ReplicationDraft, peer: PeerId): void {
  const channel = channelOf(draft, peer);
  if (channel?.phase.kind !== 'Streaming' || channel.waiters.length === 0) return;
  const { applied, logged } = channel.phase;
  const reached = mustApply(draft.state, peer) ? Math.min(applied, logged.index) : logged.index;
  const ready = channel.waiters.filter(({ index }) => index <= reached);
  changeChannel(draft, peer, { waiters: channel.waiters.filter(({ index }) => index > reached) });
  for (const { caller } of ready) answer(draft, caller, true);
}

/** Refuses every caller that waits for the channel. */
export function endChannel(draft: ReplicationDraft, { attaching, jobs, waiters }: Channel, error: ErrorFacts): void {
  for (const caller of callersOf(attaching, jobs, waiters)) refuse(draft, caller, error);
}

/** Adds a job after the existing ones. */
export function addJob(draft: ReplicationDraft, peer: PeerId, job: WithoutHead<Job>): void {
  const channel = channelOf(draft, peer);
  if (channel?.phase.kind !== 'Streaming') {
    refuse(draft, job.caller, notAttached(peer));
    return;
  }
  setChannel(draft, { ...channel, jobs: [...channel.jobs, { ...job, id: nextNumber(draft), fetching: false, fetched: null }] });
}

function callersOf(attaching: Channel['attaching'], jobs: readonly Job[], waiters: Channel['waiters']): LogCaller[] {
  return [...(attaching === null ? [] : [attaching.caller]), ...[...jobs, ...waiters].map(({ caller }) => caller)];
}

function notAttached(peer: PeerId): ErrorFacts {
  return { code: 'unavailable', detail: `peer ${peer} is not attached, or has failed: attach it first`, retryAfterMs: 1000 };
}

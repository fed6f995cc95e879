/** Decides what is sent to another replica next: a request for its position, entries in order, and jobs in their places between entries. */

import { invariant } from '../../protocols/invariant.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { ShardEntry } from '../../protocols/model/shard-log.js';
import {
  callPeer,
  changeChannel,
  changeLeading,
  channelOf,
  leadingOf,
  log,
  nextNumber,
  type ReplicationDraft,
  setChannel,
} from './draft.js';
import { APPEND_BYTES, EXCUSE_TICKS, FAIL_TICKS, PROPOSE_TICKS } from './figures.js';
import { endChannel } from './jobs.js';
import { acknowledge } from './leading.js';
import type { Fetch, PeerCall } from './messages.js';
import { recentAfter } from './recent.js';
import { isRequired, mustApply } from './required.js';
import type { Busy, Channel, Job, Phase } from './state.js';
import { forgetDone } from './writing.js';

type Streaming = Extract<Phase, { kind: 'Streaming' }>;
type WithoutHead<Kind> = Kind extends Busy ? Omit<Kind, 'call' | 'startedAt'> : never;

export function driveAll(draft: ReplicationDraft): void {
  for (const peer of leadingOf(draft).channels.keys()) drive(draft, peer);
  acknowledge(draft);
  forgetDone(draft);
}

function drive(draft: ReplicationDraft, peer: PeerId): void {
  maybeBreak(draft, peer);
  const channel = channelOf(draft, peer);
  if (channel === undefined) return;
  const { phase } = channel;
  const { ticks } = draft.state;
  if (phase.kind === 'Broken') {
    if (!isRequired(draft.state, peer)) dropChannel(draft, peer);
    else if (ticks >= phase.proposeAt) propose(draft, channel);
    return;
  }
  if (channel.busy !== null || ticks < channel.retryAt) return;
  if (phase.kind === 'Streaming') drivenStream(draft, channel, phase);
  else if (phase.kind === 'Probing') probe(draft, channel);
}

/** Breaks the channel of a required replica that answers only errors for too long. Others are left alone. */
function maybeBreak(draft: ReplicationDraft, peer: PeerId): void {
  const channel = channelOf(draft, peer) as Channel;
  const { error, failingSince, phase } = channel;
  if (failingSince === null || draft.state.ticks - failingSince < FAIL_TICKS || phase.kind === 'Broken') return;
  const facts = error ?? { code: 'unavailable', detail: `peer ${peer} does not answer` };
  if (!isRequired(draft.state, peer)) {
    endChannel(draft, channel, { code: 'unavailable', detail: facts.detail, retryAfterMs: 1000 });
    dropChannel(draft, peer);
    return;
  }
  if (isWaitedFor(draft, channel)) breakChannel(draft, peer, facts.detail);
}

/** Marks the channel as broken and asks whether the leader may go on without the replica. */
export function breakChannel(draft: ReplicationDraft, peer: PeerId, detail: string): void {
  const channel = channelOf(draft, peer);
  if (channel === undefined) return;
  endChannel(draft, channel, { code: 'unavailable', detail, retryAfterMs: 1000 });
  changeChannel(draft, peer, {
    phase: { kind: 'Broken', proposeAt: draft.state.ticks },
    busy: null,
    attaching: null,
    jobs: [],
    waiters: [],
    error: { code: 'unavailable', detail },
  });
  log(draft, 'warn', `the replica on peer ${peer} is to be Dead: ${detail}`);
}

export function dropChannel(draft: ReplicationDraft, peer: PeerId): void {
  const channels = new Map(leadingOf(draft).channels);
  channels.delete(peer);
  changeLeading(draft, { channels });
}

function propose(draft: ReplicationDraft, { peer }: Channel): void {
  draft.effects.push({ kind: 'judgeAlone', run: leadingOf(draft).run, peer });
  changeChannel(draft, peer, { phase: { kind: 'Broken', proposeAt: draft.state.ticks + PROPOSE_TICKS } });
}

/** Lets acknowledgements go on without the replica for a while, and asks for its position meanwhile (Log-L9). */
export function excuse(draft: ReplicationDraft, peer: PeerId): void {
  const channel = channelOf(draft, peer);
  const { ticks } = draft.state;
  if (channel?.phase.kind !== 'Broken' || draft.state.required.has(peer)) return;
  setChannel(draft, {
    ...channel,
    phase: { kind: 'Probing', position: null },
    excusedUntil: ticks + EXCUSE_TICKS,
    failingSince: ticks,
    retryAt: ticks + 1,
  });
}

function isWaitedFor(draft: ReplicationDraft, { phase, waiters }: Channel): boolean {
  const { pending } = leadingOf(draft);
  if (waiters.length > 0) return true;
  if (phase.kind !== 'Streaming') return pending.length > 0;
  return pending.some(({ input, index }) => index > phase.logged.index || (input.until !== 'logged' && index > phase.applied));
}

function probe(draft: ReplicationDraft, channel: Channel): void {
  if (channel.phase.kind !== 'Probing') return;
  const { position } = channel.phase;
  if (position === null) call(draft, channel, { kind: 'position' }, { kind: 'position' });
  else read(draft, channel, 'check', position);
}

function drivenStream(draft: ReplicationDraft, channel: Channel, phase: Streaming): void {
  const [job] = channel.jobs;
  if (job === undefined) {
    send(draft, channel, phase, Number.POSITIVE_INFINITY);
    return;
  }
  const request = requestOf(job, phase);
  if (request === null) {
    // Entries must not overtake a job whose place is still being fetched.
    if (!job.fetching) fetch(draft, channel, job);
    return;
  }
  const at = placeOf(job);
  if (at !== null && phase.logged.index < at) send(draft, channel, phase, at);
  else if (at !== null && phase.logged.index > at) changeChannel(draft, channel.peer, { jobs: [again(job), ...channel.jobs.slice(1)] });
  else call(draft, channel, request, { kind: 'job' });
}

/** Sends entries up to an index, or an empty call that is answered once the earlier entries are applied. */
function send(draft: ReplicationDraft, channel: Channel, { applied, logged }: Streaming, upToIndex: number): void {
  const { last, recent } = leadingOf(draft);
  if (logged.index < Math.min(upToIndex, last.index)) {
    const entries = recentAfter(recent, logged, upToIndex, APPEND_BYTES);
    if (entries === null) read(draft, channel, 'read', logged);
    else if (entries.length > 0) append(draft, channel, entries);
    return;
  }
  if (!mustBeApplied(draft, channel, applied, logged.index)) return;
  const request: PeerCall = { kind: 'append', previous: logged, entries: [], until: 'applied' };
  call(draft, channel, request, { kind: 'append', upTo: logged, applied: true });
}

export function append(draft: ReplicationDraft, channel: Channel, entries: readonly ShardEntry[]): void {
  const upTo = entries.at(-1)?.tag;
  if (channel.phase.kind !== 'Streaming' || upTo === undefined) return;
  const { applied: before, logged } = channel.phase;
  const applied = mustBeApplied(draft, channel, before, upTo.index);
  const request: PeerCall = { kind: 'append', previous: logged, entries, until: applied ? 'applied' : 'logged' };
  call(draft, channel, request, { kind: 'append', upTo, applied });
}

/** Whether a caller waits until an operation in (after, upTo] is applied on this replica. */
function mustBeApplied(draft: ReplicationDraft, { peer, waiters }: Channel, after: number, upTo: number): boolean {
  if (!mustApply(draft.state, peer)) return false;
  if (waiters.some(({ index }) => index > after && index <= upTo)) return true;
  return leadingOf(draft).pending.some(({ input, index }) => input.until !== 'logged' && index > after && index <= upTo);
}

function call(draft: ReplicationDraft, channel: Channel, request: PeerCall, busy: WithoutHead<Busy>): void {
  const { peer } = channel;
  invariant(channel.busy === null, 'Log-L7', `peer ${peer} is to be called twice at a time`);
  const number = nextNumber(draft);
  setChannel(draft, { ...channel, busy: { ...busy, call: number, startedAt: draft.state.ticks } });
  callPeer(draft, leadingOf(draft).run, peer, number, request);
}

function read(draft: ReplicationDraft, channel: Channel, kind: 'check' | 'read', after: Streaming['logged']): void {
  const number = nextNumber(draft);
  const { peer } = channel;
  setChannel(draft, { ...channel, busy: { kind, call: number, startedAt: draft.state.ticks } });
  draft.effects.push({ kind: 'read', run: leadingOf(draft).run, peer, call: number, after, bytesMax: APPEND_BYTES });
}

function fetch(draft: ReplicationDraft, channel: Channel, job: Job): void {
  const { peer } = channel;
  const wanted: Fetch | null =
    job.kind === 'fill'
      ? { kind: 'buckets', buckets: job.buckets }
      : job.kind === 'compare'
        ? { kind: 'digest' }
        : job.kind === 'settings'
          ? { kind: 'settings' }
          : null;
  if (wanted === null) return;
  setChannel(draft, { ...channel, jobs: [{ ...job, fetching: true }, ...channel.jobs.slice(1)] });
  draft.effects.push({ kind: 'fetch', run: leadingOf(draft).run, peer, job: job.id, fetch: wanted });
}

/** The call for a job; null if its data has to be fetched first. */
function requestOf({ fetched, kind }: Job, { logged }: Streaming): PeerCall | null {
  if (kind === 'reset') return { kind: 'resetLog', at: logged };
  if (kind === 'rewind') return { kind: 'rewindLog', to: logged };
  if (fetched === null) return null;
  switch (fetched.kind) {
    case 'settings':
      return { kind: 'applySettings', operations: fetched.operations };
    case 'digest': {
      const { at, buckets, points } = fetched;
      return { kind: 'digest', leaders: { at, buckets, points } };
    }
    case 'buckets':
      return { kind: 'replaceBuckets', bytes: fetched.bytes };
    default:
      return fetched satisfies never;
  }
}

/** Index of the operation after which the job has its place; null if it may have any place. */
export function placeOf({ fetched }: Job): number | null {
  return fetched === null || fetched.kind === 'settings' ? null : fetched.at.index;
}

/** The job without its fetched data, so that they are fetched again. */
export function again(job: Job): Job {
  return { ...job, fetching: false, fetched: null };
}

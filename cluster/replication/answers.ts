/** Answers from other replicas, and from the own replica for them. */

import type { ErrorFacts } from '../../protocols/errors.js';
import { invariant } from '../../protocols/invariant.js';
import type { LogTag } from '../../protocols/model/shard-log.js';
import type { DataAnswer } from '../data-messages.js';
import { append, breakChannel, dropChannel, placeOf } from './channels.js';
import { answer, channelOf, type InputOf, leadingOf, nextNumber, type ReplicationDraft, refuse, setChannel } from './draft.js';
import { APPEND_BYTES } from './figures.js';
import { addJob, answerWaiters, endChannel } from './jobs.js';
import type { ReadPart } from './messages.js';
import { firstOf } from './recent.js';
import { isAgreedRequired, isRequired } from './required.js';
import type { Busy, Channel, Job } from './state.js';

export function answered(draft: ReplicationDraft, { answer, call, peer }: InputOf<'answered'>): void {
  const found = channelOf(draft, peer);
  if (found?.busy?.call !== call) return;
  const { busy } = found;
  const channel: Channel = { ...found, busy: null };
  switch (busy.kind) {
    case 'position':
      if (answer.kind === 'position' && channel.phase.kind === 'Probing')
        setChannel(draft, { ...channel, phase: { kind: 'Probing', position: answer.last } });
      else setChannel(draft, channel);
      break;
    case 'append':
      appended(draft, channel, busy);
      break;
    case 'job':
      jobAnswered(draft, channel, answer);
      break;
    case 'check':
    case 'read':
      invariant(false, 'Log-L13', `peer ${peer} has answered a ${busy.kind} of the own log`);
      break;
    default:
      busy satisfies never;
  }
}

function appended(draft: ReplicationDraft, channel: Channel, { applied, upTo }: Extract<Busy, { kind: 'append' }>): void {
  if (channel.phase.kind !== 'Streaming') {
    setChannel(draft, channel);
    return;
  }
  const done = applied ? upTo.index : channel.phase.applied;
  setChannel(draft, { ...healthy(channel), phase: { kind: 'Streaming', logged: upTo, applied: done } });
  answerWaiters(draft, channel.peer);
}

export function callFailed(draft: ReplicationDraft, { call, error, isLost, peer }: InputOf<'callFailed'>): void {
  const found = channelOf(draft, peer);
  if (found?.busy?.call !== call) return;
  const { busy } = found;
  if (busy.kind === 'job') {
    jobFailed(draft, { ...found, busy: null }, error, isLost);
    return;
  }
  const failing = failed(draft, found, error);
  // Its log differs from what the leader assumed, or it knows another leader: ask for its position.
  const isOther = error.code === 'conflict' && failing.phase.kind === 'Streaming';
  setChannel(draft, isOther ? { ...failing, phase: { kind: 'Probing', position: null } } : failing);
}

function failed(draft: ReplicationDraft, channel: Channel, error: ErrorFacts): Channel {
  const { ticks } = draft.state;
  const startedAt = channel.busy?.startedAt ?? ticks;
  // A busy replica is alive, so `busy` is no failure.
  const failingSince = error.code === 'busy' ? channel.failingSince : (channel.failingSince ?? startedAt);
  return { ...channel, busy: null, error, failingSince, retryAt: ticks + 1 };
}

export function readDone(draft: ReplicationDraft, { call, part, peer }: InputOf<'readDone'>): void {
  const found = channelOf(draft, peer);
  if (found?.busy?.call !== call) return;
  const channel: Channel = { ...found, busy: null, retryAt: 0 };
  if (part.kind !== 'entries') {
    discontinued(draft, channel, part);
    return;
  }
  if (channel.phase.kind === 'Probing' && channel.phase.position !== null) continued(draft, channel, channel.phase.position);
  else setChannel(draft, channel);
  const next = channelOf(draft, peer);
  if (next?.phase.kind !== 'Streaming') return;
  // A job that was added during the read keeps its place: send entries up to it only.
  const [job] = next.jobs;
  const upTo = job === undefined ? Number.POSITIVE_INFINITY : (placeOf(job) ?? next.phase.logged.index);
  const entries = firstOf(part.entries, upTo, APPEND_BYTES);
  if (entries.length > 0) append(draft, next, entries);
  else if (leadingOf(draft).last.index <= next.phase.logged.index) setChannel(draft, healthy(next));
}

export function readFailed(draft: ReplicationDraft, { call, peer }: InputOf<'readFailed'>): void {
  const channel = channelOf(draft, peer);
  // A failed read of the own log says nothing about the other replica.
  if (channel?.busy?.call === call) setChannel(draft, { ...channel, busy: null, retryAt: draft.state.ticks + 1 });
}

/** Begins to stream: the leader's log continues the replica's. */
function continued(draft: ReplicationDraft, channel: Channel, logged: LogTag): void {
  const { attaching, peer } = channel;
  setChannel(draft, {
    ...channel,
    phase: { kind: 'Streaming', logged, applied: 0 },
    inherited: false,
    attaching: null,
    excusedUntil: null,
  });
  answerWaiters(draft, peer);
  // An earlier attach may have ended between the reset and the settings.
  if (attaching !== null) addJob(draft, peer, { kind: 'settings', caller: attaching.caller, how: 'delta', entries: lackOf(draft, logged) });
}

/** Breaks, resets or rewinds the channel: the leader's log does not continue the replica's. */
function discontinued(draft: ReplicationDraft, channel: Channel, part: Exclude<ReadPart, { kind: 'entries' }>): void {
  const { attaching, inherited, peer, phase } = channel;
  const { assignment, required } = draft.state;
  const detail =
    part.kind === 'compacted' ? `it lacks more than the log of the leader has` : `its log has something else than that of the leader`;
  if (inherited && !(assignment !== null && isAgreedRequired(assignment, peer))) {
    // A replica that was really required had everything, so this one was not.
    draft.state.required = new Set([...required].filter((each) => each !== peer));
  }
  if (isRequired(draft.state, peer)) {
    setChannel(draft, channel);
    breakChannel(draft, peer, detail);
    return;
  }
  const idle: Channel = { ...channel, phase: { kind: 'Idle' }, inherited: false, attaching: null, failingSince: null, excusedUntil: null };
  if (attaching === null) {
    endChannel(draft, channel, { code: 'unavailable', detail: `the replica on peer ${peer} has to be attached anew: ${detail}` });
    setChannel(draft, { ...idle, jobs: [], waiters: [] });
    return;
  }
  const entries = lackOf(draft, phase.kind === 'Probing' && phase.position !== null ? phase.position : leadingOf(draft).last);
  const { caller, mayReset } = attaching;
  const logged = mayReset ? leadingOf(draft).last : part.kind === 'diverged' ? part.before : null;
  if (logged === null) {
    setChannel(draft, idle);
    answer(draft, caller, { how: 'refused', entries });
    return;
  }
  const begin: Job = { kind: mayReset ? 'reset' : 'rewind', id: nextNumber(draft), caller, entries, fetching: false, fetched: null };
  setChannel(draft, { ...idle, phase: { kind: 'Streaming', logged, applied: 0 }, jobs: [begin] });
}

export function fetched(draft: ReplicationDraft, { job, peer, value }: InputOf<'fetched'>): void {
  const channel = channelOf(draft, peer);
  if (channel?.jobs[0]?.id !== job) return;
  setChannel(draft, { ...channel, jobs: [{ ...channel.jobs[0], fetched: value }, ...channel.jobs.slice(1)] });
}

export function fetchFailed(draft: ReplicationDraft, { error, job, peer }: InputOf<'fetchFailed'>): void {
  const channel = channelOf(draft, peer);
  if (channel?.jobs[0]?.id !== job) return;
  refuse(draft, channel.jobs[0].caller, error);
  setChannel(draft, { ...channel, jobs: channel.jobs.slice(1) });
}

function jobAnswered(draft: ReplicationDraft, channel: Channel, reply: DataAnswer): void {
  const [job, ...jobs] = channel.jobs;
  if (job === undefined || channel.phase.kind !== 'Streaming') {
    setChannel(draft, channel);
    return;
  }
  const next: Channel = { ...healthy(channel), jobs };
  switch (job.kind) {
    case 'reset':
    case 'rewind': {
      // `last` has moved on since, but nothing has been sent: its place is where the channel is.
      const settings: Job = {
        kind: 'settings',
        id: nextNumber(draft),
        caller: job.caller,
        how: job.kind === 'reset' ? 'reset' : 'rewound',
        entries: job.entries,
        fetching: false,
        fetched: null,
      };
      setChannel(draft, { ...next, jobs: [settings, ...jobs] });
      break;
    }
    case 'settings':
      setChannel(draft, next);
      answer(draft, job.caller, { how: job.how, entries: job.entries });
      break;
    case 'compare':
      setChannel(draft, next);
      compared(draft, job, reply);
      break;
    case 'fill': {
      setChannel(draft, next);
      const sent = job.fetched?.kind === 'buckets' ? job.fetched : null;
      const changed = reply.kind === 'done' ? reply.changed : 0;
      answer(draft, job.caller, { changed, points: sent?.points ?? 0, bytes: sent?.bytes.byteLength ?? 0 });
      break;
    }
    default:
      job satisfies never;
  }
}

function jobFailed(draft: ReplicationDraft, channel: Channel, error: ErrorFacts, isLost: boolean): void {
  const [job, ...jobs] = channel.jobs;
  if (job === undefined) {
    setChannel(draft, channel);
    return;
  }
  if (job.kind === 'rewind' && error.code === 'conflict') {
    // Its log no longer reaches back to where the two logs part, or never had that entry.
    setChannel(draft, { ...channel, phase: { kind: 'Idle' }, jobs: [] });
    answer(draft, job.caller, { how: 'refused', entries: job.entries });
    return;
  }
  refuse(draft, job.caller, isLost || error.code === 'conflict' ? { code: 'unavailable', detail: error.detail } : error);
  const next: Channel = { ...channel, jobs, error, retryAt: draft.state.ticks + 1 };
  if (job.kind !== 'reset' && job.kind !== 'rewind') {
    setChannel(draft, next);
    return;
  }
  // Where its log begins or ends is unknown, so it has to be attached again.
  for (const { caller } of jobs) refuse(draft, caller, { code: 'unavailable', detail: error.detail });
  if (isRequired(draft.state, channel.peer)) setChannel(draft, { ...next, jobs: [], phase: { kind: 'Probing', position: null } });
  else dropChannel(draft, channel.peer);
}

function compared(draft: ReplicationDraft, job: Extract<Job, { kind: 'compare' }>, reply: DataAnswer): void {
  const own = job.fetched;
  if (own?.kind !== 'digest' || reply.kind !== 'digest' || reply.at.index !== own.at.index) {
    refuse(draft, job.caller, { code: 'unavailable', detail: 'the digests were not of the same operation', retryAfterMs: 100 });
    return;
  }
  const buckets: number[] = [];
  for (let bucket = 0; bucket < own.buckets.length; bucket += 1) {
    if (own.buckets[bucket] !== reply.buckets[bucket] || own.points[bucket] !== reply.points[bucket]) buckets.push(bucket);
  }
  const points = buckets.map((bucket) => own.points[bucket] as number);
  const total = own.points.reduce((sum, count) => sum + count, 0);
  answer(draft, job.caller, { buckets, points, total });
}

function healthy(channel: Channel): Channel {
  return { ...channel, failingSince: null, error: null, retryAt: 0, excusedUntil: null };
}

/** The number of entries that the replica lacks. An estimate: indexes have gaps where leaders changed. */
function lackOf(draft: ReplicationDraft, logged: LogTag): number {
  const { last, recent } = leadingOf(draft);
  return last.term === logged.term ? Math.max(0, last.index - logged.index) : recent.entries.length;
}

/**
 * A new leader asks all required replicas for their positions and takes over the entries that it lacks, so that it has every acknowledged
 * operation (Log-L4).
 */

import { BrokenInvariant } from '../../protocols/invariant.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { LogTag } from '../../protocols/model/shard-log.js';
import { assignmentOf, callPeer, type InputOf, log, nextNumber, type ReplicationDraft, setRole } from './draft.js';
import { APPEND_BYTES, FAIL_TICKS, PROPOSE_TICKS } from './figures.js';
import { becomeLeading } from './leading.js';
import { isRequired, othersOf } from './required.js';
import type { Probe, Syncing } from './state.js';

export function startSyncing(draft: ReplicationDraft, last: LogTag): void {
  setRole(draft, { kind: 'Syncing', run: nextNumber(draft), last, probes: new Map(), source: null });
}

/** Asks required replicas for their positions; then takes over entries, or leads. */
export function driveSync(draft: ReplicationDraft): void {
  const role = syncingOf(draft);
  const probes = wantedProbes(draft, role);
  for (const [peer, probe] of probes) probes.set(peer, drivenProbe(draft, role.run, peer, probe));
  // Do not wait for a source that is Dead by now.
  const source = role.source !== null && probes.has(role.source.peer) ? role.source : null;
  setRole(draft, { ...role, probes, source });
  if (source === null && [...probes.values()].every(({ last }) => last !== null)) takeOverOrLead(draft);
}

export function syncAnswered(draft: ReplicationDraft, { answer, call, peer }: InputOf<'answered'>): void {
  const role = syncingOf(draft);
  if (role.source?.call === call) {
    if (answer.kind === 'entries' && answer.entries.length > 0) {
      draft.effects.push({ kind: 'takeOver', run: role.run, previous: role.source.from, entries: answer.entries });
      return;
    }
    if (answer.kind === 'entries') setRole(draft, withProbe({ ...role, source: null }, peer, { last: null, askedAt: draft.state.ticks }));
    else giveUp(draft, peer, answer.kind);
    return;
  }
  const probe = role.probes.get(peer);
  if (probe?.call !== call || answer.kind !== 'position') return;
  setRole(draft, withProbe(role, peer, { call: null, last: answer.last }));
}

export function syncCallFailed(draft: ReplicationDraft, { call, error, peer }: InputOf<'callFailed'>): void {
  const role = syncingOf(draft);
  const probe = role.probes.get(peer);
  if (probe === undefined || (probe.call !== call && role.source?.call !== call)) return;
  const source = role.source?.call === call ? null : role.source;
  const askedAt = probe.last === null ? probe.askedAt : draft.state.ticks;
  // Ask for its position again: it may have another one when it is back.
  setRole(draft, withProbe({ ...role, source }, peer, { call: null, last: null, askedAt, retryAt: draft.state.ticks + 1 }));
  log(draft, 'info', `peer ${peer} does not say what it has: ${error.detail}`);
}

export function tookOver(draft: ReplicationDraft, { last }: InputOf<'tookOver'>): void {
  const role = syncingOf(draft);
  setRole(draft, { ...role, last: last.index > role.last.index ? last : role.last, source: null });
}

/** The probes of exactly the required replicas, with a new probe for each new one. */
function wantedProbes(draft: ReplicationDraft, role: Syncing): Map<PeerId, Probe> {
  const { assignment, ticks } = draft.state;
  const probes = new Map<PeerId, Probe>();
  for (const peer of othersOf(draft.state)) {
    if (!isRequired(draft.state, peer)) continue;
    const since = assignment?.since.get(peer) ?? 0;
    const known = role.probes.get(peer);
    const fresh: Probe = { since, last: null, call: null, askedAt: ticks, retryAt: 0, proposeAt: 0 };
    probes.set(peer, known?.since === since ? known : fresh);
  }
  return probes;
}

function drivenProbe(draft: ReplicationDraft, run: number, peer: PeerId, probe: Probe): Probe {
  const { ticks } = draft.state;
  if (probe.last !== null) return probe;
  let next = probe;
  if (ticks - probe.askedAt >= FAIL_TICKS && ticks >= probe.proposeAt) {
    draft.effects.push({ kind: 'judgeAlone', run, peer });
    next = { ...next, proposeAt: ticks + PROPOSE_TICKS };
  }
  if (next.call !== null || ticks < next.retryAt) return next;
  const call = nextNumber(draft);
  callPeer(draft, run, peer, call, { kind: 'position' });
  return { ...next, call };
}

function takeOverOrLead(draft: ReplicationDraft): void {
  const role = syncingOf(draft);
  const { probes, last, run } = role;
  if (knowsLaterTerm(draft, role)) {
    askAgainLater(draft, role);
    return;
  }
  let source: [PeerId, LogTag] | null = null;
  for (const [peer, { last: its }] of probes) if (its !== null && its.index > (source?.[1] ?? last).index) source = [peer, its];
  if (source === null) {
    becomeLeading(draft, last, new Map([...probes].map(([peer, probe]) => [peer, probe.last as LogTag])));
    return;
  }
  const [peer] = source;
  const call = nextNumber(draft);
  setRole(draft, { ...role, source: { peer, call, from: last } });
  callPeer(draft, run, peer, call, { kind: 'entriesAfter', after: last, bytesMax: APPEND_BYTES });
}

/** Whether a log has entries of a later term: the agreed state of this node is an old one, and another replica leads by now. */
function knowsLaterTerm(draft: ReplicationDraft, { last, probes }: Syncing): boolean {
  const { term } = assignmentOf(draft);
  return last.term > term || [...probes.values()].some((probe) => probe.last !== null && probe.last.term > term);
}

/** Waits for the newer agreed state, which ends this role. */
function askAgainLater(draft: ReplicationDraft, role: Syncing): void {
  const { ticks } = draft.state;
  const probes = [...role.probes].map(
    ([peer, probe]) => [peer, { ...probe, last: null, askedAt: ticks, retryAt: ticks + PROPOSE_TICKS }] as const,
  );
  setRole(draft, { ...role, probes: new Map(probes) });
}

/**
 * Gives up on a longer log that does not continue the own one: one of the two has operations that were never acknowledged, or has lost
 * some. The replica whose log ends in the older term is made Dead and is filled from the other one.
 */
function giveUp(draft: ReplicationDraft, peer: PeerId, reason: string): void {
  const { self, ticks } = draft.state;
  const role = syncingOf(draft);
  const its = role.probes.get(peer)?.last ?? null;
  const dead = its !== null && its.term < role.last.term ? peer : self;
  log(draft, 'warn', `the log of peer ${peer} does not continue the own one (${reason}): ${dead} is to be Dead`);
  draft.effects.push({ kind: 'judgeAlone', run: role.run, peer: dead });
  setRole(draft, withProbe({ ...role, source: null }, peer, { last: null, askedAt: ticks, retryAt: ticks + PROPOSE_TICKS }));
}

function withProbe(role: Syncing, peer: PeerId, change: Partial<Probe>): Syncing {
  const probe = role.probes.get(peer);
  return probe === undefined ? role : { ...role, probes: new Map(role.probes).set(peer, { ...probe, ...change }) };
}

function syncingOf(draft: ReplicationDraft): Syncing {
  const { role } = draft.state;
  if (role.kind !== 'Syncing') throw new BrokenInvariant('Log-L13', `a replica that is ${role.kind} does not synchronize`);
  return role;
}

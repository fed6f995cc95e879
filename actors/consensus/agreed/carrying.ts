/**
 * Executes the agreed state: gives the node actor what this node should have whenever it changes, and tells the node's progress to those
 * who wait for it.
 */

import type { ClusterState } from '../../../cluster/state/state.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { NO_WRITE } from '../../../protocols/model/consensus.js';
import type { CarriedOut, Desired, DesiredCollection } from '../../context/desired.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { maybeAnswerReads } from '../proposals/reads.js';
import { maybeSettle } from '../proposals/settling.js';
import type { Carrying } from '../state.js';
import { maybeActivate } from './activation.js';
import { ownPart } from './local-replicas.js';

/**
 * Most states that the node has been given and has not finished: a few, so that it can work on one while the next one comes. Agreements in
 * between are combined into one state. Each state names all collections, so many would cost memory and time in both actors.
 */
const ASKED_MAX = 4;

/** The collections and aliases that a peer should have by the agreed state. */
export function desiredOf(agreed: ClusterState, peerId: PeerId): Desired {
  const collections = new Map<string, DesiredCollection>();
  for (const [name, record] of agreed.collections) collections.set(name, ownPart(record, peerId).desired);
  return { index: agreed.appliedIndex, peerId, clusterId: agreed.clusterId, collections, aliases: agreed.aliases };
}

/** Gives the node the newest agreed state, if it differs for this node. */
export function askToReconcile(draft: ConsensusDraft): void {
  const { agreed, carrying, identity } = draft.member;
  // The state went back because the leader's was taken over; the missing entries follow. Nothing is undone until then.
  if (agreed.appliedIndex <= carrying.covers || carrying.asked.length >= ASKED_MAX) return;
  const { source } = carrying;
  const untouched = source?.collections === agreed.collections && source.aliases === agreed.aliases;
  const next = untouched ? null : desiredOf(agreed, identity.peerId);
  const newest = carrying.asked.at(-1) ?? carrying.done;
  const covers = agreed.appliedIndex;
  if (next === null || (newest !== null && isSame(newest, next))) {
    const idle = carrying.asked.length === 0;
    draft.change({ carrying: { ...carrying, source: agreed, covers, carriedOut: idle ? covers : carrying.carriedOut } });
    if (idle) noteProgress(draft);
    return;
  }
  draft.change({ carrying: { ...carrying, asked: [...carrying.asked, next], source: agreed, covers } });
  // After a restart this node does not serve an older state than the one it has served.
  draft.write({ ...NO_WRITE, applied: next.index }, null);
  draft.emitAfterWrites({ kind: 'desire', desired: next });
}

/** Notes the node's report. It is about the newest state that was asked for, so earlier ones are done. */
export function noteCarriedOut(draft: ConsensusDraft, { failures, index }: CarriedOut): void {
  const { carrying } = draft.member;
  const asked = carrying.asked.filter((desired) => desired.index > index);
  const done = carrying.asked.findLast((desired) => desired.index <= index) ?? carrying.done;
  const reached = asked.length === 0 ? carrying.covers : index;
  const carriedOut = Math.max(carrying.carriedOut, reached);
  draft.change({ carrying: { ...carrying, asked, done, carriedOut, failures } });
  askToReconcile(draft);
  noteProgress(draft);
}

/** Answers a peer at once with this node's progress, and again when the index is reached. */
export function noteAsked(draft: ConsensusDraft, peer: PeerId, index: number): void {
  const { carrying } = draft.member;
  draft.tell(peer, { kind: 'applied', index: carrying.carriedOut });
  if (carrying.carriedOut >= index) return;
  const askers = new Map(carrying.askers).set(peer, Math.max(index, carrying.askers.get(peer) ?? 0));
  draft.change({ carrying: { ...carrying, askers } });
}

function noteProgress(draft: ConsensusDraft): void {
  tellAskers(draft, draft.member.carrying);
  maybeActivate(draft);
  maybeSettle(draft);
  maybeAnswerReads(draft);
}

function tellAskers(draft: ConsensusDraft, carrying: Carrying): void {
  if (carrying.askers.size === 0) return;
  const askers = new Map(carrying.askers);
  for (const [peer, index] of askers) {
    if (index > carrying.carriedOut) continue;
    draft.tell(peer, { kind: 'applied', index: carrying.carriedOut });
    askers.delete(peer);
  }
  draft.change({ carrying: { ...carrying, askers } });
}

function isSame(one: Desired, other: Desired): boolean {
  if (one.collections.size !== other.collections.size || !isSameMap(one.aliases, other.aliases)) return false;
  for (const [name, collection] of one.collections) {
    const its = other.collections.get(name);
    if (its === collection) continue;
    if (its === undefined || its.uid !== collection.uid || its.revision !== collection.revision) return false;
    if (its.shards.join() !== collection.shards.join() || its.since.join() !== collection.since.join()) return false;
  }
  return true;
}

function isSameMap(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one === other || (one.size === other.size && [...one].every(([key, value]) => other.get(key) === value));
}

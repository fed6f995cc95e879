/**
 * A caller of an agreed command is answered when this node has executed it and, up to the caller's deadline, every reachable peer has. A
 * peer that is connected but silent is not waited for.
 */

import type { CollectionRecord, ShardRecord } from '../../../cluster/state/state.js';
import type { PeerId, ShardId } from '../../../protocols/model/cluster.js';
import type { MemberConsensus, SettlingCall } from '../state.js';
import type { ConsensusDraft } from './draft.js';

/** Ticks until a question is asked again, as questions and answers may be lost. */
const ASK_AGAIN_TICKS = 10;
/** Ticks after which a peer without an answer counts as unreachable. */
const SILENT_TICKS = 15;
const NO_SHARDS: CollectionRecord['shards'] = new Map();

export function settle(draft: ConsensusDraft, call: Omit<SettlingCall, 'sinceTick' | 'askedTick' | 'heard'>): void {
  const { calls, ticks } = draft.member;
  draft.changeCalls({ settling: [...calls.settling, { ...call, sinceTick: ticks, askedTick: ticks, heard: new Map() }] });
  for (const peer of reachablePeers(draft.member)) draft.tell(peer, { kind: 'awaitApplied', index: call.index });
  maybeSettle(draft);
}

/** Notes a peer's progress. */
export function noteApplied(draft: ConsensusDraft, peer: PeerId, index: number): void {
  const { settling } = draft.member.calls;
  if (settling.length === 0) return;
  draft.changeCalls({ settling: settling.map((call) => ({ ...call, heard: new Map(call.heard).set(peer, index) })) });
  maybeSettle(draft);
}

/** Answers the calls that have nothing left to wait for. */
export function maybeSettle(draft: ConsensusDraft): void {
  const { settling } = draft.member.calls;
  if (settling.length === 0) return;
  const left = settling.filter((call) => !maybeAnswer(draft, call));
  if (left.length < settling.length) draft.changeCalls({ settling: left });
}

export function askAgain(draft: ConsensusDraft): void {
  const { calls, ticks } = draft.member;
  if (calls.settling.length === 0) return;
  const settling = calls.settling.map((call) => {
    if (ticks - call.askedTick < ASK_AGAIN_TICKS) return call;
    for (const peer of waitedFor(draft.member, call)) {
      if (!isThere(call, peer)) draft.tell(peer, { kind: 'awaitApplied', index: call.index });
    }
    return { ...call, askedTick: ticks };
  });
  draft.changeCalls({ settling });
  maybeSettle(draft);
}

function maybeAnswer(draft: ConsensusDraft, call: SettlingCall): boolean {
  const { carrying, ticks } = draft.member;
  const late = ticks >= call.deadlineTick;
  if (carrying.carriedOut < call.index) {
    if (!late) return false;
    draft.refuse(call.replyTo, {
      code: 'timeout',
      detail: 'the cluster has accepted the change, and this node has not completed it in time',
    });
    return true;
  }
  const failure = carrying.failures.find(({ collection, shardId }) => {
    return collection === call.collection && (shardId === null || isAwaited(draft.member, call, shardId));
  });
  if (failure !== undefined) {
    // The replica may still be opening.
    if (!late) return false;
    const detail = `the cluster has agreed on the operation, but this node failed to apply it so far: ${failure.detail}`;
    draft.refuse(call.replyTo, { code: 'unavailable', detail, outcome: 'unknown' });
    return true;
  }
  const waited = waitedFor(draft.member, call);
  if (!late && (waited.some((peer) => !isThere(call, peer)) || waitsForReplicas(draft.member, call, waited))) return false;
  draft.reply(call.replyTo, call.answer);
  return true;
}

function isAwaited(member: MemberConsensus, call: SettlingCall, shardId: ShardId): boolean {
  const shard = awaitedShards(member, call).get(shardId);
  return shard !== undefined && isNew(shard, member.identity.peerId, call);
}

/** Whether the call has made this replica, and it was not Active yet: what fails beside it is no matter of this call. */
function isNew({ replicas, since }: ShardRecord, peer: PeerId, { index }: SettlingCall): boolean {
  return replicas.get(peer) === 'Initializing' && since.get(peer) === index;
}

function isThere(call: SettlingCall, peer: PeerId): boolean {
  return (call.heard.get(peer) ?? 0) >= call.index;
}

function waitedFor(member: MemberConsensus, call: SettlingCall): PeerId[] {
  const patient = member.ticks - call.sinceTick < SILENT_TICKS;
  return reachablePeers(member).filter((peer) => patient || call.heard.has(peer));
}

function waitsForReplicas(member: MemberConsensus, call: SettlingCall, waited: readonly PeerId[]): boolean {
  const peers = [member.identity.peerId, ...waited];
  return [...awaitedShards(member, call).values()].some((shard) => peers.some((peer) => isNew(shard, peer, call)));
}

function awaitedShards({ agreed }: MemberConsensus, { awaitsReplicas, collection }: SettlingCall): CollectionRecord['shards'] {
  return (awaitsReplicas && collection !== null ? agreed.collections.get(collection)?.shards : undefined) ?? NO_SHARDS;
}

function reachablePeers({ agreed, connected, identity }: MemberConsensus): PeerId[] {
  return agreed.membership.map(({ peerId }) => peerId).filter((peerId) => peerId !== identity.peerId && connected.has(peerId));
}

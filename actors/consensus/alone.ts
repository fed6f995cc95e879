/** Whether a shard may go on without one of its replicas although its cluster can agree on nothing (L9). */

import { decodeOperation } from '../../cluster/operation-codec.js';
import { between, lastIndex } from '../../cluster/raft/log.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { Entry } from '../../protocols/model/consensus.js';
import type { MemberConsensus } from './state.js';

/**
 * True where `peer` is the only other voter, and is away: nothing is agreed on without this node then, and nothing that is in its log
 * and not agreed on yet would take a shard's lead from it.
 */
export function isAloneWithout({ connected, identity, raft }: MemberConsensus, peer: PeerId): boolean {
  const voters = raft.membership.filter(({ voter }) => voter).map(({ peerId }) => peerId);
  if (voters.length !== 2 || !voters.includes(identity.peerId) || !voters.includes(peer) || connected.has(peer)) return false;
  return between(raft.log, raft.appliedIndex + 1, lastIndex(raft.log)).every((entry) => isHarmless(entry, identity.peerId));
}

function isHarmless({ payload }: Entry, self: PeerId): boolean {
  if (payload.kind !== 'operation') return payload.kind === 'empty';
  const { operation } = decodeOperation(payload.bytes);
  switch (operation.kind) {
    case 'setReplicaStates':
      return operation.changes.every(({ peerId }) => peerId !== self);
    case 'noop':
    case 'changeAliases':
    case 'createCollection':
    case 'deleteCollection':
      return true;
    default:
      return false;
  }
}

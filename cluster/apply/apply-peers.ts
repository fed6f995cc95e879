/** Commands on members. Raft decides which peers are members; see `withMembership` in `apply.ts`. */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { ClusterCommand } from '../state/commands.js';
import { type ClusterState, NO_MARK, type PeerMark } from '../state/state.js';
import { type Change, done, refused, unchanged } from './change.js';

export function markPeer(state: ClusterState, command: Extract<ClusterCommand, { kind: 'markPeer' }>): Change {
  const { peerId } = command;
  if (!state.membership.some((member) => member.peerId === peerId))
    return refused(state, { code: 'notFound', detail: `peer ${peerId} is not part of the cluster` });
  const known = markOf(state, peerId);
  const leaving = command.leaving === 'stays' ? null : (command.leaving ?? known.leaving);
  const mark: PeerMark = { listens: command.listens ?? known.listens, leaving };
  if (mark.listens === known.listens && mark.leaving === known.leaving) return unchanged(state);
  const marks = new Map(state.marks);
  if (mark.listens || mark.leaving !== null) marks.set(peerId, mark);
  else marks.delete(peerId);
  return done({ ...state, marks });
}

export function planMoves(state: ClusterState, { moves }: Extract<ClusterCommand, { kind: 'planMoves' }>): Change {
  return moves.length === 0 && state.plannedMoves.length === 0 ? unchanged(state) : done({ ...state, plannedMoves: moves });
}

export function markOf({ marks }: Pick<ClusterState, 'marks'>, peerId: PeerId): PeerMark {
  return marks.get(peerId) ?? NO_MARK;
}

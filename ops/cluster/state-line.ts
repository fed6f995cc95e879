/** How a node is, in one line: for showing what changes. */

import type { ClusterAnswer, ProcessState } from './local-node.js';

export interface LocalNodeState {
  readonly process: ProcessState;
  /** How it ended; null where it has not. */
  readonly exit: string | null;
  readonly ready: boolean;
  /** Null when it does not answer. */
  readonly answer: ClusterAnswer | null;
}

/** numberOf: the node of a peer id. */
export function stateLine({ process, exit, ready, answer }: LocalNodeState, numberOf: (peerId: number) => number | undefined): string {
  if (process === 'ended') return exit === null ? 'not started' : `ended (${exit})`;
  if (process === 'paused') return 'paused';
  if (answer === null) return 'running, does not answer yet';
  const { role, term, leader, is_voter } = answer.raft_info;
  const named = (peerId: number): string => {
    const number = numberOf(peerId);
    return number === undefined ? `peer ${peerId}` : `node ${number}`;
  };
  const peers = Object.keys(answer.peers).map((id) => numberOf(Number(id)) ?? id);
  const facts = [
    `${role ?? 'no role'}${is_voter ? '' : ' (no vote)'} in term ${term}`,
    leader === null ? 'knows no leader' : leader === answer.peer_id ? null : `follows ${named(leader)}`,
    peers.length === 0 ? null : `peers ${peers.sort().join(' ')}`,
    ready ? 'ready' : 'not ready',
  ];
  const { consensus_thread_status: state, err } = answer.consensus_thread_status;
  if (state !== 'working') facts.push(err === undefined ? state : `${state}: ${err}`);
  return facts.filter((fact) => fact !== null).join(', ');
}

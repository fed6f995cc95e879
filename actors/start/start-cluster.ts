/** Puts together what a node needs to be part of a cluster. */

import type { AnswerCall } from '../../cluster/data-messages.js';
import type { PeerDetails } from '../../cluster/peer-messages.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import { type ConsensusClient, consensusClient, detailsOf } from '../consensus/client.js';
import type { ClusterOptions } from '../consensus/cluster-api.js';
import { ConsensusLink } from '../consensus/link.js';
import type { OwnReplica } from '../consensus/messages.js';
import { consensusBehaviour } from '../consensus/shell.js';
import { ConsensusView } from '../consensus/view.js';
import type { PeerCallStats } from '../context/call-stats.js';
import { CONSENSUS, type StartConsensus, TRANSFERS } from '../node/shell.js';
import type { Clock, Timers } from '../runtime/ports.js';
import type { Assignments } from '../shard-log/assignments.js';
import { TransferBoard } from '../transfers/board.js';
import { type TransfersProps, transfersBehaviour } from '../transfers/shell.js';

export interface StartedCluster extends ConsensusClient {
  readonly startConsensus: StartConsensus;
  /** 0 until it is known. */
  peerId(): PeerId;
  /** For what this node does not find. Errors: `unavailable` until it knows what is agreed. */
  checkKnows(): void;
  /** This node is about to stop: another one leads from now on. */
  handOver(): void;
}

export interface ClusterParts {
  readonly options: ClusterOptions;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly assignments: Assignments;
  /** What is counted of calls between this node and its peers. */
  readonly calls: PeerCallStats;
  /** Carries out calls of peers for this node's replicas. */
  readonly answer: AnswerCall;
  /** Figures of this node's replicas. */
  readonly replicas: () => PeerDetails['replicas'];
  /** Replicas of this node that do not serve. */
  readonly deadReplicas: () => readonly OwnReplica[];
  readonly isDiskFull: () => boolean;
  /** Whether this node may have acknowledged something alone (Log-L9). */
  readonly hasGoneAlone: () => boolean;
  readonly transfers: (board: TransferBoard) => TransfersProps;
}

export function startCluster(parts: ClusterParts): StartedCluster {
  const { answer, assignments, calls, clock, deadReplicas, hasGoneAlone, isDiskFull, options, replicas, timers, transfers } = parts;
  const board = new TransferBoard();
  const view = new ConsensusView(clock, assignments);
  const link: ConsensusLink = new ConsensusLink(options.transport, view, () => detailsOf(view, link, replicas()), answer, hasGoneAlone);
  const { api, propose, submit } = consensusClient({ view, link, clock, timers, replicas, tickMs: options.tickMs, board, calls });
  return {
    api,
    submit,
    propose,
    startConsensus: (context, local) => {
      context.spawn(transfersBehaviour(), TRANSFERS, transfers(board));
      return context.spawn(consensusBehaviour(), CONSENSUS, { options, view, link, node: context.self, deadReplicas, isDiskFull, local });
    },
    peerId: () => view.peerId,
    checkKnows: () => view.checkKnows(),
    handOver: () => void view.actor?.tell({ kind: 'handOver' }),
  };
}

/** A cluster that only pretends: peers 11 (this node), 12 and 13, with collections to show. It records what it is asked. */

import type { ClusterApi, ClusterStatus } from '../../actors/consensus/cluster-api.js';
import { CallStats } from '../../actors/context/call-stats.js';
import { TransferBoard } from '../../actors/transfers/board.js';
import type { PeerDetails } from '../../cluster/peer-messages.js';
import type { RaftState } from '../../cluster/raft/state.js';
import type { ClusterCommand } from '../../cluster/state/commands.js';
import type { ClusterState } from '../../cluster/state/state.js';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionClusterUpdate, PeerId } from '../../protocols/model/cluster.js';
import { CUSTOM, configOf, Log, membersOf } from '../cluster/samples.js';

export class FakeCluster implements ClusterApi {
  readonly config = { tickMs: 100, joinMs: 10_000, requestMs: 5000, queuedMessagesMax: 64 };
  readonly transfers = new TransferBoard();
  readonly calls = { made: new CallStats(), answered: new CallStats() };
  readonly asked: string[] = [];
  joined = true;
  /** See `checkStarted`. */
  starts = false;
  agreed: ClusterState = sampleState();
  leads = true;
  fullPeers: ReadonlySet<PeerId> = new Set();
  error: string | null = null;
  /** What `barrier`, `setUp` and their like fail with. */
  failure: TroupeError | null = null;

  status(): ClusterStatus {
    const { error } = this;
    return {
      peerId: 11,
      phase: this.joined ? 'Member' : 'Joining',
      error,
      raft: this.joined ? raftState(this.leads) : null,
      pendingOperations: 2,
      carriedOut: 6,
      leaderless: false,
      fullPeers: this.fullPeers,
      caughtUp: true,
      lastUpdateMs: 1000,
      pledgedBy: null,
      internalPort: { connections: 3, plainConnections: 1, callStreams: 1, calls: 2 },
      connections: new Map([
        [12, { connected: true, failures: 0, lastError: null, lastErrorMs: null, protocolVersion: 1, queued: 4 }],
        [13, { connected: false, failures: 5, lastError: 'connection refused', lastErrorMs: 2000, protocolVersion: null, queued: 0 }],
      ]),
    };
  }

  state(): ClusterState | null {
    return this.joined ? this.agreed : null;
  }

  checkStarted(): void {
    if (this.starts) throw new TroupeError('unavailable', 'the node is starting', { retryAfterMs: 1000 });
  }

  whenStarted(): Promise<void> | null {
    return this.starts ? Promise.reject(new TroupeError('unavailable', 'the node is starting', { retryAfterMs: 1000 })) : null;
  }

  whenRead(): null {
    return null;
  }

  async barrier(timeoutMs: number): Promise<void> {
    this.note(`barrier ${timeoutMs}`);
  }

  async removePeer(peerId: PeerId, force: boolean, timeoutMs: number): Promise<boolean> {
    this.note(`remove ${peerId}${force ? ' by force' : ''} ${timeoutMs}`);
    return true;
  }

  async recover(timeoutMs: number): Promise<boolean> {
    this.note(`recover ${timeoutMs}`);
    return true;
  }

  async change(operation: ClusterCommand, timeoutMs: number, settles = true): Promise<boolean> {
    this.note(`change ${JSON.stringify(operation)} ${timeoutMs}${settles ? '' : ' at once'}`);
    return true;
  }

  async updateCollectionCluster(collection: string, operation: CollectionClusterUpdate, timeoutMs: number): Promise<boolean> {
    const text = JSON.stringify(operation, (_key, value) => (typeof value === 'bigint' ? `${value}n` : value));
    this.note(`${collection} ${text} ${timeoutMs}`);
    return true;
  }

  async describePeers(timeoutMs: number): Promise<ReadonlyMap<PeerId, PeerDetails | null>> {
    this.note(`describe ${timeoutMs}`);
    const replicas = [
      { collection: 'a', shardId: 0, status: 'green', pointsCount: 3, vectorsCount: 6, bytes: 4096, payloadBytes: 512, optimizedPoints: 2 },
    ];
    const details = { version: '0.5.0', role: 'Leader', isVoter: true, term: 3, commit: 9, pendingOperations: 0, lastUpdateMs: 0 } as const;
    return new Map<PeerId, PeerDetails | null>([
      [11, { ...details, replicas }],
      [12, { ...details, role: 'Follower', replicas: [] }],
      [13, null],
    ]);
  }

  private note(asked: string): void {
    if (this.failure !== null) throw this.failure;
    this.asked.push(asked);
  }
}

/** Collection `a` with two shards, one of them being copied to peer 13, collection `k` with keys, and alias `x` of `a`. */
function sampleState(): ClusterState {
  const log = new Log();
  const active = (shardId: number, peerId: PeerId) => ({
    collection: 'a',
    uid: 2,
    shardId,
    peerId,
    from: null,
    to: 'Active' as const,
    term: null,
  });
  log.propose({ kind: 'createCollection', name: 'a', config: configOf({ shard_number: 2 }), placement: [[11, 12], [12]] });
  log.propose({ kind: 'setReplicaStates', changes: [active(0, 11), active(0, 12), active(1, 12)] });
  log.propose({ kind: 'setReplicaStates', changes: [{ ...active(0, 12), to: 'Dead', term: null }] });
  const transfer = { shardId: 1, from: 12, to: 13, toShardId: null };
  log.propose({ kind: 'startTransfer', collection: 'a', transfer, method: 'stream_records', sync: true });
  log.propose({ kind: 'changeAliases', actions: [{ kind: 'create', alias: 'x', collection: 'a' }] });
  log.propose({ kind: 'createCollection', name: 'k', config: CUSTOM, placement: [] });
  for (const key of ['red', 7, 2n ** 60n])
    log.propose({ kind: 'createShardKey', collection: 'k', key, placement: [[11]], initialState: 'Active', closed: false });
  return log.state;
}

/** As far as reports look at it. */
function raftState(leads: boolean): RaftState {
  const progress = { matchIndex: 8, nextIndex: 10, mode: { kind: 'Probe', waiting: false }, round: 1, recentlyActive: true };
  const state = {
    term: 3,
    leader: leads ? 11 : 12,
    role: leads ? { kind: 'Leader', progress: new Map([[12, progress]]) } : { kind: 'Follower' },
    log: { snapshot: null, entries: [{ index: 10, term: 3, payload: { kind: 'empty' } }], termBefore: 0 },
    commitIndex: 9,
    appliedIndex: 9,
    persistedIndex: 10,
    membership: membersOf([11, 12, 13]),
  };
  return state as unknown as RaftState;
}

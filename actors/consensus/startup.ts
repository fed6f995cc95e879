/** Makes a node a member: from its log, by founding a cluster, or by joining one. */

import { RAFT_DEFAULTS } from '../../cluster/raft/config.js';
import { lastIndex } from '../../cluster/raft/log.js';
import { startRaft } from '../../cluster/raft/start.js';
import { type ClusterState, type CollectionRecord, emptyState, type ShardRecord } from '../../cluster/state/state.js';
import { encodeState } from '../../cluster/state/state-codec.js';
import type { Of } from '../../protocols/machine.js';
import type { Member, PeerId } from '../../protocols/model/cluster.js';
import { type ConsensusWrite, NO_WRITE, NOTHING_STORED, type PeerIdentity, type StoredConsensus } from '../../protocols/model/consensus.js';
import { localShards } from '../collection/state.js';
import { ADOPTED, ADOPTED_IN_PART, type Adoption, type Belonging, type LocalData, shardsElsewhere } from '../context/desired.js';
import { become, type Step } from '../runtime/behaviour.js';
import { NOT_CAUGHT_UP } from './agreed/catching-up.js';
import { DRAFT_ACTS, takeEffects } from './drive.js';
import { newSurvival } from './membership/survivor.js';
import { followMembership, urisOf } from './membership/upkeep.js';
import type { ConsensusEffect, ConsensusMessage, Drawn } from './messages.js';
import { ConsensusDraft } from './proposals/draft.js';
import { withWrite } from './proposals/outbox.js';
import {
  broken,
  type ConsensusState,
  EMPTY_OUTBOX,
  type JoiningConsensus,
  type MemberConsensus,
  noCalls,
  nothingCarried,
  type Outbox,
  removed,
  type Settings,
  type StartingConsensus,
} from './state.js';

type ConsensusStep = Step<ConsensusState, ConsensusEffect>;

/** Index of the state that a founder begins with. */
const FOUNDED = 1;

/** Begins as the log says; without an identity in the log, as the node was started. */
export function beginLoaded(state: StartingConsensus, { drawn, stored }: Of<ConsensusMessage, 'loaded'>): ConsensusStep {
  const { settings } = state;
  const { identity } = stored;
  const again = identity === null ? null : { ...identity, starts: identity.starts + 1 };
  if (again?.removed === true && settings.bootstrap === null) return become(removed(settings, again, null));
  if (again === null || again.removed) return beginAfresh(state, newPeer(drawn), drawn);
  if (again.clusterId === null) return beginAfresh(state, again, drawn);
  const write = { ...NO_WRITE, identity: again };
  // The node was let in and ended before it heard of the cluster: it needs the members' addresses.
  if (stored.snapshot === null && stored.entries.length === 0 && settings.bootstrap !== null) return join(state, again, write, drawn);
  return becomeMember(settings, again, { stored, seed: drawn.seed, write, members: [] });
}

function beginAfresh(state: StartingConsensus, identity: PeerIdentity, drawn: Drawn): ConsensusStep {
  const { settings } = state;
  if (settings.bootstrap !== null) return join(state, identity, { ...NO_WRITE, reset: true, identity }, drawn);
  if (settings.uri === null) {
    const detail = 'a node that founds a cluster needs --uri: the address at which other nodes will find it';
    return become(broken(settings, { code: 'wrongInput', detail }, state.failures));
  }
  const founding = { ...drawn, peerId: identity.peerId };
  return become<ConsensusState, ConsensusEffect>({ ...state, founding }, { kind: 'adopt', adoption: adoptionOf(settings.local, founding) });
}

function newPeer({ peerId }: Drawn): PeerIdentity {
  return { peerId, clusterId: null, starts: 1, removed: false };
}

function join(state: StartingConsensus, identity: PeerIdentity, write: ConsensusWrite, { seed }: Drawn): ConsensusStep {
  const { settings } = state;
  const { effects, outbox } = withWrite(EMPTY_OUTBOX, write, null);
  const joining: JoiningConsensus = { kind: 'Joining', settings, identity, seed, outbox, failures: 0, error: null, logged: null };
  return become<ConsensusState, ConsensusEffect>(joining, { kind: 'listen', peerId: identity.peerId }, ...effects);
}

/** The request to join, sent once this node's identity is on disk. */
export function askToJoin({ identity, settings }: JoiningConsensus): ConsensusEffect {
  const { bootstrap, port, uri, version } = settings;
  return { kind: 'join', uri: bootstrap ?? '', request: { kind: 'join', peerId: identity.peerId, uri, port, version } };
}

/** The cluster has let this node in. */
export function becomeJoined(state: JoiningConsensus, { reply: { clusterId, members } }: Of<ConsensusMessage, 'joined'>): ConsensusStep {
  const identity = { ...state.identity, clusterId };
  const write = { ...NO_WRITE, identity };
  const stored = { ...NOTHING_STORED, identity };
  return becomeMember(state.settings, identity, { stored, seed: state.seed, write, members, outbox: state.outbox });
}

/** Founds a cluster: the first state is a snapshot with the collections that this node had. */
export function becomeFounder(state: StartingConsensus, { clusterId, peerId, seconds, seed }: Drawn): ConsensusStep {
  const { settings } = state;
  const identity = { peerId, clusterId, starts: 1, removed: false };
  const membership = [{ peerId, uri: settings.uri ?? '', version: settings.version, voter: true }];
  const data = encodeState({ ...foundedState(settings.local, clusterId, peerId, seconds + 1), membership });
  const snapshot = { index: FOUNDED, term: FOUNDED, membership, data };
  const hardState = { term: FOUNDED, votedFor: null, commit: FOUNDED };
  const write = { ...NO_WRITE, reset: true, identity, hardState, snapshot, applied: FOUNDED };
  const stored = { identity, hardState, snapshot, entries: [], applied: FOUNDED };
  return becomeMember(settings, identity, { stored, seed, write, members: [] });
}

interface Beginning {
  readonly stored: StoredConsensus;
  readonly seed: number;
  /** The write that comes before everything else. */
  readonly write: ConsensusWrite;
  /** Members that are known before the log has any. */
  readonly members: readonly Member[];
  readonly outbox?: Outbox;
}

function becomeMember(settings: Settings, identity: PeerIdentity, beginning: Beginning): ConsensusStep {
  const { members, outbox = EMPTY_OUTBOX, seed, stored, write } = beginning;
  const raft = startRaft({ ...RAFT_DEFAULTS, peerId: identity.peerId }, stored, seed);
  const member: MemberConsensus = {
    kind: 'Member',
    settings,
    identity,
    raft: raft.state,
    agreed: emptyState(identity.clusterId ?? ''),
    outbox,
    // Everything up to `applied` is applied at once, and the node gets no older state.
    carrying: nothingCarried(stored.applied - 1),
    sessionWrite: outbox.writes + 1,
    calls: noCalls(identity.starts),
    survival: newSurvival(settings.tickMs),
    loadedIndex: lastIndex(raft.state.log),
    loadedLeads: null,
    catchUp: NOT_CAUGHT_UP,
    ticks: 0,
    leaderlessTicks: 0,
    connected: new Set(),
    heardTicks: new Map(),
    fullTicks: new Map(),
    peers: members,
    logBytes: 0,
    snapshotBytes: stored.snapshot?.data.length ?? 0,
    upkeep: { activateTick: 0, announceTick: 0, leadsSinceTick: 0, wellWith: null, announceTurn: 0 },
  };
  const draft = new ConsensusDraft(member, DRAFT_ACTS);
  draft.emit({ kind: 'listen', peerId: identity.peerId });
  draft.write(write, null);
  draft.emit(beginningNotice(identity, beginning));
  if (settings.bootstrap !== null && members.length === 0) draft.emit({ kind: 'log', level: 'info', text: BOOTSTRAP_IGNORED });
  if (members.length > 0) draft.emit({ kind: 'setPeers', uris: urisOf(members, identity.peerId) });
  takeEffects(draft, raft.effects);
  followMembership(draft);
  draft.emit({ kind: 'tickLater' });
  return { state: draft.member, effects: draft.effects };
}

const BOOTSTRAP_IGNORED = '--bootstrap has no effect: this node is a member of its cluster already';

function beginningNotice({ clusterId, peerId }: PeerIdentity, { stored, write }: Beginning): ConsensusEffect {
  const how = write.reset ? 'founded' : stored.hardState.term === 0 ? 'joins' : 'is part of';
  return { kind: 'log', level: 'info', text: `this peer (${peerId}) ${how} cluster ${clusterId}` };
}

/**
 * The founder's state: its collections have this peer's replicas; shards that were on other peers have none any more. term: of its shards.
 * Their logs may come from a former cluster whose terms are unknown here. The time in seconds is above them, as no shard gets a new leader
 * every second.
 */
function foundedState(local: LocalData, clusterId: string, peerId: PeerId, term: number): ClusterState {
  const collections = local.collections.map((collection): [string, CollectionRecord] => {
    const { belonging, config, name } = collection;
    const held = localShards(collection).map((shardId): [number, ShardRecord] => [
      shardId,
      { key: null, replicas: new Map([[peerId, 'Active']]), since: new Map([[peerId, FOUNDED]]), leader: peerId, term },
    ]);
    const lost = shardsElsewhere(belonging, config).map((shardId): [number, ShardRecord] => [
      shardId,
      { key: null, replicas: new Map(), since: new Map(), leader: null, term: 0 },
    ]);
    const shards = new Map([...held, ...lost]);
    const nextShardId = Math.max(-1, ...shards.keys()) + 1;
    return [
      name,
      {
        uid: uidOf(lost),
        revision: FOUNDED,
        config,
        shards,
        nextShardId,
        transfers: [],
        autoReplication: false,
        shardMapVersion: FOUNDED,
        resharding: null,
        closedKeys: [],
        keyCopy: null,
        payloadIndexes: new Map(),
      },
    ];
  });
  return { ...emptyState(clusterId), appliedIndex: FOUNDED, collections: new Map(collections), aliases: local.aliases };
}

function adoptionOf({ collections }: LocalData, { clusterId, peerId }: Drawn): Adoption {
  return new Map(
    collections.map((collection): [string, Belonging] => {
      const { belonging, config, name } = collection;
      const uid = uidOf(shardsElsewhere(belonging, config));
      const shards = localShards(collection);
      return [name, { clusterId, peerId, index: FOUNDED, uid, revision: FOUNDED, shards, since: shards.map(() => FOUNDED) }];
    }),
  );
}

function uidOf(lost: readonly unknown[]): number {
  return lost.length > 0 ? ADOPTED_IN_PART : ADOPTED;
}

/** A node's routes among pretended peers, whose time a test has in hand. */

import { Routes } from '../../../actors/requests/routes.js';
import { Assignments } from '../../../actors/shard-log/assignments.js';
import { type DataAnswer, type DataCall, NotReached } from '../../../cluster/data-messages.js';
import { type CollectionRecord, emptyState, type ShardRecord } from '../../../cluster/state/state.js';
import { type ErrorReason, TroupeError } from '../../../protocols/errors.js';
import type { PeerId, ReplicaState, ShardId } from '../../../protocols/model/cluster.js';
import { FakeWorld } from '../fake-world.js';
import { sampleConfig } from '../samples.js';

export const UID = 7;
export const SELF = 1;

export type Answerer = (call: DataCall, from: PeerId) => DataAnswer | Promise<DataAnswer>;

export class Peers {
  readonly world = new FakeWorld();
  readonly assignments = new Assignments();
  readonly asked: string[] = [];
  readonly answers = new Map<PeerId, Answerer>();
  barriers = 0;
  /** See `Assignments.serves`. */
  serves = true;
  connected: ReadonlySet<PeerId> = new Set();
  #shards: ReadonlyMap<ShardId, ShardRecord> = new Map();
  #index = 0;
  readonly routes: Routes;

  constructor() {
    const { ports } = this.world;
    const answer = (peer: PeerId, call: DataCall) => this.#answer(peer, call);
    this.routes = new Routes({
      assignments: this.assignments,
      calls: { call: answer },
      answer,
      barrier: async () => {
        this.barriers += 1;
      },
      clock: ports.clock,
      timers: ports.timers,
      random: ports.random,
    });
  }

  /** Replicas of each shard, and who leads it. */
  agree(
    shards: Readonly<Record<ShardId, { readonly leader: PeerId | null; readonly term?: number } & Readonly<Record<PeerId, ReplicaState>>>>,
    writeFactor = 1,
  ): void {
    const config = sampleConfig();
    this.#shards = new Map(
      Object.entries(shards).map(([shardId, { leader, term = 1, ...states }]) => {
        const replicas = new Map(Object.entries(states).map(([peer, state]) => [Number(peer), state as ReplicaState]));
        const since = new Map([...replicas.keys()].map((peer) => [peer, 1]));
        return [Number(shardId), { key: null, replicas, since, leader, term }];
      }),
    );
    const record: CollectionRecord = {
      uid: UID,
      revision: 1,
      config: { ...config, params: { ...config.params, write_consistency_factor: writeFactor } },
      shards: this.#shards,
      nextShardId: this.#shards.size,
      transfers: [],
      autoReplication: false,
      shardMapVersion: UID,
      resharding: null,
      closedKeys: [],
      keyCopy: null,
      payloadIndexes: new Map(),
    };
    this.show({ c: record });
  }

  show(collections: Readonly<Record<string, CollectionRecord>>): void {
    this.#index += 1;
    const agreed = { ...emptyState('cluster'), appliedIndex: this.#index, collections: new Map(Object.entries(collections)) };
    this.assignments.show({
      agreed,
      peerId: SELF,
      leads: false,
      connected: this.connected,
      serves: this.serves,
      lastIndexAtStart: 0,
      leadsAtStart: new Map(),
      isAloneWithout: () => false,
      full: new Set(),
    });
  }

  /** What a promise comes to while time passes. */
  async outcome<T>(promise: Promise<T>, limitMs = 120_000): Promise<T> {
    let over = false;
    const end = () => {
      over = true;
    };
    promise.then(end, end);
    for (let passedMs = 0; !over && passedMs < limitMs; passedMs += 10) {
      for (let turn = 0; turn < 8; turn++) await Promise.resolve();
      await new Promise((resolve) => setImmediate(resolve));
      if (!over) this.world.advance(10);
    }
    if (!over) throw new Error(`nothing came of it; asked: ${this.asked.join(', ')}`);
    return promise;
  }

  async #answer(peer: PeerId, call: DataCall): Promise<DataAnswer> {
    const shards = 'shards' in call ? call.shards : 'shard' in call ? [call.shard.shardId] : [];
    this.asked.push(`${call.kind} ${shards.join('+')} of ${peer}`);
    const answer = this.answers.get(peer);
    if (answer === undefined) throw new NotReached(`there is no connection with peer ${peer}`);
    return answer(call, SELF);
  }
}

export function never(): Promise<never> {
  return new Promise(() => {});
}

export function conflict(reason: ErrorReason = 'notLeader', detail = 'another leads'): Promise<never> {
  return Promise.reject(new TroupeError('conflict', detail, { reason }));
}

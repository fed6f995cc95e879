/** States, entries and operations that tests of the cluster start from. */

import { applyEntry, type ProposalResult } from '../../cluster/apply/apply.js';
import { encodeCommand } from '../../cluster/state/command-codec.js';
import type { ClusterCommand, Outcome, ProposedCommand } from '../../cluster/state/commands.js';
import { type ClusterState, emptyState } from '../../cluster/state/state.js';
import type { Membership, PeerId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { Entry } from '../../protocols/model/consensus.js';
import { sampleConfig } from '../actors/samples.js';

export const PEERS: readonly PeerId[] = [11, 12, 13];

export function membersOf(peers: readonly PeerId[]): Membership {
  return peers.map((peerId) => ({ peerId, uri: `http://peer${peerId}:6335`, version: '0.5.0', voter: true }));
}

export function configOf(params: Partial<CollectionConfig['params']> = {}): CollectionConfig {
  const config = sampleConfig();
  return { ...config, params: { ...config.params, ...params } };
}

export const CUSTOM = configOf({ sharding_method: 'custom' });

/** Writes entries of one origin and applies them. */
export class Log {
  readonly entries: Entry[] = [];
  state: ClusterState;
  #sequence = 0;

  constructor(peers: readonly PeerId[] = PEERS) {
    this.state = emptyState('c1');
    this.membership(peers);
  }

  membership(peers: readonly PeerId[]): void {
    this.append({ kind: 'membership', membership: membersOf(peers) });
  }

  empty(): void {
    this.append({ kind: 'empty' });
  }

  /** The outcome of an operation that the first peer proposes. */
  propose(command: ClusterCommand): Outcome {
    this.#sequence += 1;
    const result = this.proposed({ origin: PEERS[0] as PeerId, session: 1, sequence: this.#sequence, doneBelow: 1, command });
    if (result === null) throw new Error('a new proposal has an outcome');
    return result.outcome;
  }

  /** The same in words: `done`, `unchanged`, or the refusal. */
  say(command: ClusterCommand): string {
    return inWords(this.propose(command));
  }

  proposed(operation: ProposedCommand): ProposalResult | null {
    return this.append({ kind: 'operation', bytes: encodeCommand(operation) });
  }

  append(payload: Entry['payload']): ProposalResult | null {
    const entry = { index: this.entries.length + 1, term: 1, payload };
    this.entries.push(entry);
    const { outcome, state } = applyEntry(this.state, entry);
    this.state = state;
    return outcome;
  }
}

export function inWords(outcome: Outcome): string {
  if (outcome.kind === 'done') return outcome.changed ? 'done' : 'unchanged';
  return `${outcome.error.code}: ${outcome.error.detail}`;
}

/** Replicas of a collection, a line per shard: `0 a: 11 Active, 12 Dead`. */
export function printShards(state: ClusterState, collection: string): string {
  const record = state.collections.get(collection);
  if (record === undefined) return 'no such collection';
  const lines = [...record.shards].map(([shardId, { key, replicas }]) => {
    const shown = [...replicas].map(([peerId, replica]) => `${peerId} ${replica}`).join(', ');
    return `${shardId}${key === null ? '' : ` ${String(key)}`}: ${shown}`;
  });
  const transfers = record.transfers.map(({ from, method, shardId, to }) => `${shardId}: ${from} → ${to} by ${method}`);
  return [...lines, ...transfers].join('\n');
}

/** The leader of each shard and its term: `0: 11 1`. */
export function printLeaders(state: ClusterState, collection: string): string {
  const { shards } = state.collections.get(collection) ?? { shards: new Map() };
  return [...shards].map(([shardId, { leader, term }]) => `${shardId}: ${leader ?? 'none'} ${term}`).join('\n');
}

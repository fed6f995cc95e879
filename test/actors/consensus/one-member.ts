/** One node's consensus, stepped by hand. */

import { TRANSFER_LIMITS } from '../../../actors/consensus/cluster-api.js';
import type { ConsensusEffect, ConsensusMessage, Drawn } from '../../../actors/consensus/messages.js';
import type { ConsensusState, MemberConsensus, Settings } from '../../../actors/consensus/state.js';
import { startConsensus, stepConsensus } from '../../../actors/consensus/step.js';
import { stepRaft as raftStep } from '../../../cluster/raft/step.js';
import { NOTHING_STORED } from '../../../protocols/model/consensus.js';

export const DRAWN: Drawn = { peerId: 11, clusterId: 'c', seed: 1, seconds: 0 };

export function settings(over: Partial<Settings> = {}): Settings {
  const local = { collections: [], aliases: new Map() };
  const figures = {
    port: 6335,
    version: '1.0.0',
    tickMs: 100,
    compactEntries: 0,
    listens: false,
    survives: true,
    transferMethod: 'stream_records' as const,
    transferLimits: TRANSFER_LIMITS,
  };
  return { uri: 'http://one:6335', bootstrap: null, ...figures, raftStep, local, ...over };
}

/** Effects of messages one after the other, and the state in the end. */
export function after(state: ConsensusState, ...messages: ConsensusMessage[]): { state: ConsensusState; effects: ConsensusEffect[] } {
  const effects: ConsensusEffect[] = [];
  let next = state;
  for (const message of messages) {
    const step = stepConsensus(next, message);
    next = step.state;
    effects.push(...step.effects);
  }
  return { state: next, effects };
}

/** Tells of every write that it is on disk, until there is none. */
export function settle(state: ConsensusState, effects: readonly ConsensusEffect[]): { state: ConsensusState; effects: ConsensusEffect[] } {
  const all = [...effects];
  let next = state;
  for (let at = 0; at < all.length; at++) {
    const effect = all[at] as ConsensusEffect;
    if (effect.kind !== 'write') continue;
    const step = stepConsensus(next, { kind: 'written', number: effect.number });
    next = step.state;
    all.push(...step.effects);
  }
  return { state: next, effects: all };
}

export function founder(over: Partial<Settings> = {}): { state: MemberConsensus; effects: ConsensusEffect[] } {
  const { state, effects } = after(
    startConsensus(settings(over)).state,
    { kind: 'loaded', stored: NOTHING_STORED, drawn: DRAWN },
    { kind: 'adopted' },
  );
  const settled = settle(state, effects);
  return { state: settled.state as MemberConsensus, effects: settled.effects };
}

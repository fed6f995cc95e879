/** Sample messages of consensus: a node that founds a cluster, and one that is let into one. */

import type { ConsensusMessage } from '../../../actors/consensus/messages.js';
import type { ConsensusState } from '../../../actors/consensus/state.js';
import { startConsensus, stepConsensus } from '../../../actors/consensus/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { NOTHING_STORED } from '../../../protocols/model/consensus.js';
import { DRAWN, settings } from '../../actors/consensus/one-member.js';
import type { Machine } from '../walk.js';

const FULL: ErrorFacts = { code: 'storage', detail: 'no space left' };
const REMOVED = { peerId: 11, clusterId: 'c', starts: 1, removed: true };
const MEMBER = { peerId: 22, uri: 'http://two:6335', version: '1.0.0', voter: true };

const MESSAGES: readonly ConsensusMessage[] = [
  { kind: 'loaded', stored: NOTHING_STORED, drawn: DRAWN },
  { kind: 'loaded', stored: { ...NOTHING_STORED, identity: REMOVED }, drawn: DRAWN },
  { kind: 'loadFailed', error: FULL },
  { kind: 'adopted' },
  { kind: 'adoptFailed', error: FULL },
  { kind: 'listenFailed', error: FULL },
  { kind: 'joined', reply: { kind: 'joined', clusterId: 'c', uri: 'http://one:6335', members: [MEMBER] } },
  { kind: 'joinFailed', error: FULL },
  { kind: 'retry' },
  { kind: 'tick' },
  { kind: 'received', from: 22, messages: [] },
  { kind: 'connectionChanged', peer: 22, connected: true },
  { kind: 'peerUnreachable', peer: 22 },
  { kind: 'pledged', peer: 22, uri: MEMBER.uri, contact: 0, untilMs: 0 },
  { kind: 'ended', peer: 22, contact: 0 },
  { kind: 'requested', request: { kind: 'describe', clusterId: 'c' }, address: 'two', replyTo: 1 },
  { kind: 'written', number: 1 },
  { kind: 'writeFailed', error: FULL },
  { kind: 'carriedOut', index: 1, failures: [] },
  { kind: 'replicasDied', replicas: [] },
  { kind: 'diskFilled' },
  { kind: 'announceAnswered', error: { code: 'notFound', detail: 'peer 11 was removed from the cluster' } },
  { kind: 'handOver' },
  { kind: 'submit', submission: { kind: 'operation', operation: { kind: 'noop' } }, settles: true, timeoutMs: 1000, replyTo: 2 },
  { kind: 'barrier', timeoutMs: 1000, replyTo: 3 },
  { kind: 'removePeer', peerId: 22, force: false, timeoutMs: 1000, replyTo: 4 },
  { kind: 'recover', timeoutMs: 1000, replyTo: 5 },
];

export const CONSENSUS: Machine<ConsensusState, ConsensusMessage> = {
  step: stepConsensus,
  starts: [startConsensus(settings()).state, startConsensus(settings({ bootstrap: MEMBER.uri })).state],
  // A member goes on for ever.
  inputs: (state) => (state.kind === 'Member' && state.ticks > 0 ? [] : MESSAGES),
};

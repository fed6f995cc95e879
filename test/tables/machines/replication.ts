/** Sample inputs of a replica's part in its shard's log. */

import type { ReplicationInput } from '../../../cluster/replication/messages.js';
import { type ReplicationRole, type ReplicationState, startReplication } from '../../../cluster/replication/state.js';
import { stepReplication } from '../../../cluster/replication/step.js';
import { NO_TAG } from '../../../protocols/model/shard-log.js';
import { assignment, SELF, tag } from '../../cluster/replication/machine.js';
import type { Machine } from '../walk.js';

/** The role is what the table goes by. */
interface InRole {
  readonly kind: ReplicationRole['kind'];
  readonly state: ReplicationState;
}

const LEADS = assignment({ 1: 'Active', 2: 'Active' });
const FOLLOWS = assignment({ 1: 'Active', 2: 'Active' }, { leader: 2, term: 5 });
const error = { code: 'unavailable', detail: 'it is away' } as const;
const address = { collection: 'c', uid: 5, shardId: 0 };
const peer = 2;
const caller = 1;

/** Those that no role has asked for. */
const HEARD: readonly ReplicationInput[] = [
  { kind: 'opened' },
  { kind: 'closed', error },
  { kind: 'assigned', self: SELF, assignment: LEADS, isSettled: true },
  { kind: 'assigned', self: SELF, assignment: FOLLOWS, isSettled: true },
  { kind: 'assigned', self: SELF, assignment: null, isSettled: true },
  { kind: 'tick' },
  { kind: 'write', caller, operation: 'upsertPoints', operations: [Uint8Array.of(1)], until: 'logged', deadlineMs: 0 },
  { kind: 'missing', caller, ids: [1], deadlineMs: 0 },
  { kind: 'called', caller, from: peer, call: { kind: 'position', shard: address, term: 6 } },
  { kind: 'attach', caller, peer, mayReset: true },
  { kind: 'compare', caller, peer },
  { kind: 'fill', caller, peer, buckets: [0] },
  { kind: 'require', caller, peer },
  { kind: 'release', peer },
  { kind: 'pause', caller },
  { kind: 'resume' },
  { kind: 'aheadNoted', isAhead: false },
  { kind: 'noteFailed', isAhead: false, error },
  { kind: 'deathProposed', peer, error: null },
];

function inputsOf({ state }: InRole): readonly ReplicationInput[] {
  const { role } = state;
  switch (role.kind) {
    case 'Closed':
    case 'Following':
      return HEARD;
    case 'Locating':
      return [
        ...HEARD,
        { kind: 'located', run: role.run, last: tag(10) },
        { kind: 'located', run: role.run, last: tag(10, 3) },
        { kind: 'locateFailed', run: role.run, error },
        { kind: 'barrierPassed', run: role.run, assignment: LEADS },
        { kind: 'barrierFailed', run: role.run, error },
      ];
    case 'Syncing': {
      const call = role.probes.get(peer)?.call ?? 0;
      return [
        ...HEARD,
        { kind: 'answered', run: role.run, peer, call, answer: { kind: 'position', last: role.last, base: NO_TAG } },
        { kind: 'callFailed', run: role.run, peer, call, error, isLost: false },
        { kind: 'tookOver', run: role.run, last: role.last },
        { kind: 'takeOverFailed', run: role.run, error },
        { kind: 'aloneJudged', run: role.run, peer, isAlone: false },
      ];
    }
    case 'Leading': {
      const { run } = role;
      const call = -1;
      return [
        ...HEARD,
        { kind: 'logged', run, write: role.issued[0]?.write ?? -1, entries: [], failure: null },
        { kind: 'logFailed', run, write: role.issued[0]?.write ?? -1, error },
        { kind: 'answered', run, peer, call, answer: { kind: 'done', changed: 0 } },
        { kind: 'callFailed', run, peer, call, error, isLost: true },
        { kind: 'readDone', run, peer, call, part: { kind: 'compacted' } },
        { kind: 'readFailed', run, peer, call, error },
        { kind: 'fetched', run, peer, job: -1, value: { kind: 'settings', operations: [] } },
        { kind: 'fetchFailed', run, peer, job: -1, error },
        { kind: 'aloneJudged', run, peer, isAlone: false },
      ];
    }
    default:
      return role satisfies never;
  }
}

function inRole(state: ReplicationState): InRole {
  return { kind: state.role.kind, state };
}

export const REPLICATION: Machine<InRole, ReplicationInput> = {
  step: ({ state }, input) => ({ state: inRole(stepReplication(state, input).state) }),
  starts: [inRole(startReplication())],
  inputs: inputsOf,
};

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CopyMemory, Mover } from '../../../actors/resharding/mover.js';
import type { CopyFence, DataAnswer, DataCall } from '../../../cluster/data-messages.js';
import { flowDuties } from '../../../cluster/point-flow.js';
import type { CollectionRecord, Resharding, ShardRecord } from '../../../cluster/state.js';
import { pack } from '../../../protocols/pack.js';
import { decodePortion, encodePortionAnswer } from '../../../storage/engine/portion/codec.js';
import type { Answer, Ask } from '../../../storage/engine/portion/messages.js';
import { Peers, SELF, UID } from '../routing/support.js';
import { sampleConfig } from '../samples.js';

const STARTED = 5;

/** A collection whose shard 0 gives points to shard 1, both here. */
function recordIn(stage: Resharding['stage']): CollectionRecord {
  const shard: ShardRecord = { key: null, replicas: new Map([[SELF, 'Active']]), since: new Map([[SELF, 1]]), leader: SELF, term: 1 };
  return {
    uid: UID,
    revision: 1,
    config: sampleConfig(),
    shards: new Map([
      [0, shard],
      [1, shard],
    ]),
    nextShardId: 2,
    transfers: [],
    autoReplication: false,
    layout: STARTED,
    closedKeys: [],
    keyCopy: null,
    resharding: { direction: 'up', shardId: 1, peerId: SELF, key: null, stage, done: [], startedAt: STARTED },
  };
}

function answerTo(ask: Ask): Answer {
  switch (ask.kind) {
    case 'leaving':
      return { kind: 'leaving', parts: [{ shard: 1, points: 1, operation: new Uint8Array([1]) }], next: null };
    case 'owned':
      return { kind: 'ids', count: 1, ids: pack([7]).slice(), next: null };
    case 'gone':
    case 'stray':
      return { kind: 'deletion', count: 0, operation: null, next: null };
    default:
      return assert.fail(ask.kind);
  }
}

/** Fences of the calls that a stage makes, in their order. */
async function fencesOf(stage: Resharding['stage'], memory: CopyMemory): Promise<readonly CopyFence[]> {
  const peers = new Peers();
  peers.show({ c: recordIn(stage) });
  const fences: CopyFence[] = [];
  const answers = (call: DataCall): DataAnswer => {
    if ('fence' in call && call.fence !== undefined) fences.push(call.fence);
    switch (call.kind) {
      case 'layout':
        return { kind: 'layout', layout: STARTED, showsAll: true };
      case 'missing':
        return { kind: 'missing', id: null };
      case 'reached':
        return { kind: 'reached', logs: [{ clock: 1, tick: 3, held: 3 }] };
      case 'write':
        return { kind: 'written', numbers: [4], status: 'completed', usage: null };
      case 'read': {
        const body = encodePortionAnswer({ answers: decodePortion(call.body).asks.map(answerTo) });
        return { kind: 'answered', body, positions: [3], usage: null };
      }
      default:
        return assert.fail(call.kind);
    }
  };
  peers.answers.set(SELF, answers);
  const { agreed } = peers.assignments;
  const [duty] = agreed === null ? [] : flowDuties(agreed, SELF);
  assert.ok(duty !== undefined);
  let finished = 0;
  const parts = { routes: peers.routes, indexAs: async () => {}, finish: async () => void finished++, show: () => {} };
  await peers.outcome(new Mover(parts, duty, memory, () => false).run());
  assert.equal(finished, 1);
  return fences;
}

test('copies of a later stage come behind those of an earlier one', async () => {
  const memory: CopyMemory = { floor: -1, sequence: 0 };
  const copying = await fencesOf('copying', memory);
  const switching = await fencesOf('switching', memory);
  const numbers = [...copying, ...switching].map(({ sequence }) => sequence);
  assert.ok(copying.length > 2 && switching.length > 2);
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].sort((one, other) => one - other),
  );
  for (const { clock, from, startedAt } of copying) assert.deepEqual({ clock, from, startedAt }, { clock: 1, from: 0, startedAt: STARTED });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrationBehaviour } from '../../../actors/migration/shell.js';
import { migrationPorts } from '../../../actors/migration/start.js';
import { staleCopy } from '../../../actors/requests/shard-map.js';
import { ActorSystem } from '../../../actors/runtime/actor.js';
import { type MigrationTask, migrationTasks } from '../../../cluster/apply/migration.js';
import type { DataAnswer, DataCall } from '../../../cluster/data-messages.js';
import type { ClusterCommand } from '../../../cluster/state/commands.js';
import type { ClusterState, CollectionRecord, KeyCopy } from '../../../cluster/state/state.js';
import type { TransferProgress } from '../../../cluster/transfer/progress.js';
import { pack } from '../../../protocols/pack.js';
import type { Ask, ShardAnswer } from '../../../storage/threads/portion.js';
import { decodePortion, encodePortionAnswer } from '../../../storage/threads/portion-codec.js';
import { Peers, SELF, UID } from '../requests/support.js';
import { sampleConfig } from '../samples.js';

const OTHER = 2;
const STARTED_AT = 5;
const PAGES = 30;

function recordOf(stage: KeyCopy['stage']): CollectionRecord {
  const config = sampleConfig();
  const shard = (key: string, leader: number) => {
    const replicas = new Map([[leader, 'Active' as const]]);
    return { key, replicas, since: new Map([[leader, 1]]), leader, term: 3 };
  };
  return {
    uid: UID,
    revision: 1,
    config: { ...config, params: { ...config.params, sharding_method: 'custom' } },
    shards: new Map([
      [0, shard('source', SELF)],
      [1, shard('target', OTHER)],
    ]),
    nextShardId: 2,
    transfers: [],
    autoReplication: false,
    shardMapVersion: UID,
    resharding: null,
    closedKeys: ['target'],
    keyCopy: { source: 'source', target: 'target', filter: null, stage, done: [], startedAt: STARTED_AT },
    payloadIndexes: new Map(),
  };
}

/** A source with thirty pages of points here, and a target on another node that takes nothing behind what it has taken. */
class Copied {
  readonly peers = new Peers();
  refused = 0;
  written = 0;
  readonly indexed: string[] = [];
  readonly shown: (TransferProgress | null)[] = [];
  /** Of the last call that the other node took. */
  taken = 0;

  /** copies: that the target has. */
  constructor(private readonly copies: number) {
    const answer = (call: DataCall): DataAnswer => this.#answer(call);
    this.peers.answers.set(SELF, answer);
    this.peers.answers.set(OTHER, (call) => {
      if (call.kind === 'write' || call.kind === 'read' || call.kind === 'barrier') this.#check(call.fence?.sequence ?? -1);
      return answer(call);
    });
  }

  #check(sequence: number): void {
    if (sequence < this.taken) {
      this.refused += 1;
      throw staleCopy(0);
    }
    this.taken = sequence;
  }

  #answer(call: DataCall): DataAnswer {
    switch (call.kind) {
      case 'shardMap':
        return { kind: 'shardMap', shardMapVersion: UID, showsAll: true };
      case 'barrier':
        return { kind: 'barrier', index: 9 };
      case 'write':
        this.written += 1;
        return { kind: 'written', numbers: [1], status: 'completed', usage: null };
      case 'read': {
        const answers = decodePortion(call.body).asks.map((ask) => answerOf(ask, this.copies));
        return { kind: 'answered', body: new Uint8Array(encodePortionAnswer({ answers })), positions: [9], usage: null };
      }
      default:
        throw new Error(`nobody should ask for ${call.kind}`);
    }
  }

  /** Until the copy is agreed to be over. */
  async run(from: KeyCopy['stage'] = 'copying'): Promise<void> {
    const { peers } = this;
    peers.show({ c: recordOf(from) });
    const finished: string[] = [];
    const services = {
      assignments: peers.assignments,
      propose: async (command: ClusterCommand) => {
        assert.ok(command.kind === 'finishStage');
        finished.push(command.stage);
        peers.show({ c: { ...recordOf('switching'), ...(command.stage === 'switching' ? { keyCopy: null, closedKeys: [] } : {}) } });
        return true;
      },
    };
    const ports = migrationPorts({
      services,
      clock: peers.world.ports.clock,
      callPeer: (peer, call, timeoutMs) => peers.routes.call(peer, call, timeoutMs),
      indexAs: async (_, source, target) => void this.indexed.push(`${source}-${target}`),
    });
    const system = new ActorSystem(peers.world.ports);
    const agreed = peers.assignments.agreed as ClusterState;
    const [task] = [...migrationTasks(agreed, SELF).values()] as [MigrationTask];
    system.spawn(migrationBehaviour(), task.name, { task, ports, show: (progress) => this.shown.push(progress) }, ({ detail }) =>
      assert.fail(detail),
    );
    const states = () => system.tree().map(({ kind, state }) => `${kind} ${state}`);
    for (let passedMs = 0; states()[0] !== 'migration Over' && passedMs < 120_000; passedMs += 50) {
      await peers.world.settle();
      peers.world.advance(50);
    }
    assert.deepEqual(states(), ['migration Over']);
    system.stop();
    assert.deepEqual(finished, from === 'copying' ? ['copying', 'switching'] : ['switching']);
    assert.deepEqual(peers.world.logged, []);
  }
}

function answerOf(ask: Ask, copies: number): ShardAnswer {
  switch (ask.kind) {
    case 'count':
      return { kind: 'count', count: PAGES };
    case 'leaving': {
      const page = Number(ask.from ?? 0);
      // The second pass finds nothing new.
      if (ask.after >= 0) return { kind: 'leaving', parts: [], next: null };
      const part = { shard: 1, points: 1, operation: new Uint8Array([page]) };
      return { kind: 'leaving', parts: [part], next: page + 1 < PAGES ? page + 1 : null };
    }
    case 'owned':
      return { kind: 'ids', count: ask.owner === 1 ? PAGES : copies, ids: pack([7]).slice(), next: null };
    case 'gone':
      return { kind: 'deletion', count: 1, operation: new Uint8Array([1]), next: null };
    default:
      throw new Error(`nobody should ask for ${ask.kind}`);
  }
}

test('what is copied while writes wait goes on behind the copies before it: none of it comes late', async () => {
  const copied = new Copied(PAGES + 1);
  await copied.run();
  assert.equal(copied.refused, 0);
  // All pages, and in each stage the one that is gone.
  assert.equal(copied.written, PAGES + 2);
  assert.deepEqual(copied.indexed, ['0-1', '0-1']);
  // The end of each stage is shown, and then nothing any more.
  const lines = copied.shown.map((progress) => (progress === null ? 'over' : `${progress.stage} ${progress.sent} of ${progress.total}`));
  const [first, ...others] = lines.filter((line) => !/ (\d|[12]\d) of 30$/.test(line));
  assert.deepEqual([first, others], ['copying 0 of 0', ['copying 30 of 30', 'switching 0 of 0', 'over']]);
});

test('while writes wait, copies whose point is gone are looked for only where there are more copies than points', async () => {
  const copied = new Copied(PAGES);
  await copied.run();
  assert.equal(copied.written, PAGES + 1);
});

test('a leader that was started again within its term comes past the copies of the process before it in a few steps', async () => {
  const copied = new Copied(PAGES + 1);
  copied.taken = 1_000_000;
  await copied.run('switching');
  assert.ok(copied.refused <= 20, `${copied.refused}`);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RAFT_DEFAULTS } from '../../cluster/raft/config.js';
import type { RaftState } from '../../cluster/raft/state.js';
import { type ClusterState, emptyState } from '../../cluster/state/state.js';
import type { Membership } from '../../protocols/model/cluster.js';
import type { Entry, StoredConsensus } from '../../protocols/model/consensus.js';
import type { SimulatedNode } from './node.js';
import { Watch } from './watch.js';
import { Life } from './world.js';

const MEMBERS: Membership = [1, 2, 3].map((peerId) => ({ peerId, uri: `http://node-${peerId}:6335`, version: '0.1.0', voter: true }));

/** What a test lets a node show. */
interface Shown {
  term?: number;
  leads?: boolean;
  /** Terms of entries 1, 2, … */
  log?: readonly number[];
  commit?: number;
  state?: ClusterState;
  /** Of two nodes, in the place of three: the one that it goes on without. */
  pair?: true;
  gone?: number | null;
}

function cluster() {
  const violations: string[] = [];
  const shown: Shown[] = [{}, {}, {}];
  const disks: StoredConsensus[] = shown.map((_, at) => ({
    identity: { peerId: at + 1, clusterId: 'c', starts: 1, removed: false },
    hardState: { term: 0, votedFor: null, commit: 0 },
    snapshot: null,
    entries: [],
    applied: 0,
  }));
  const rafts: (RaftState | null)[] = [null, null, null];
  const nodes = shown.map((_, at) => ({
    host: `node-${at + 1}`,
    life: new Life(`node-${at + 1}`),
    recoveries: 0,
    disk: {
      get consensus() {
        return disks[at];
      },
    },
    cluster: {
      status: () => ({ peerId: at + 1, phase: 'Member', raft: rafts[at] }),
      state: () => (shown[at] as Shown).state ?? null,
    },
  })) as unknown as SimulatedNode[];
  const watch = new Watch(
    nodes,
    (what) => violations.push(what),
    () => {},
  );
  /** Node `number` changes, and everybody in `synced` has its log on disk before. */
  const show = (number: number, change: Shown, synced: readonly number[] = [1, 2, 3]) => {
    Object.assign(shown[number - 1] as Shown, change);
    rafts[number - 1] = raftOf(number, shown[number - 1] as Shown);
    for (const other of synced)
      (disks[other - 1] as { entries: readonly Entry[] }).entries = entriesOf((shown[number - 1] as Shown).log ?? []);
    watch.look((nodes[number - 1] as SimulatedNode).life);
  };
  /** It begins anew with what is on its disk. */
  const restart = (number: number) => {
    (nodes[number - 1] as { life: Life }).life = new Life(`node-${number}`);
  };
  return { show, violations, disks, watch, restart };
}

function raftOf(peerId: number, { commit, gone, leads, log, pair, term }: Shown): RaftState {
  const role = leads === true ? { kind: 'Leader' } : { kind: 'Follower' };
  return {
    config: { ...RAFT_DEFAULTS, peerId },
    term: term ?? 1,
    leader: null,
    role,
    log: { snapshot: null, entries: entriesOf(log ?? []), termBefore: 0 },
    commitIndex: commit ?? 0,
    membership: pair === true ? MEMBERS.slice(0, 2) : MEMBERS,
    gone: gone ?? null,
  } as unknown as RaftState;
}

function entriesOf(terms: readonly number[]): Entry[] {
  return terms.map((term, at) => ({ index: at + 1, term, payload: { kind: 'empty' } }));
}

test('a cluster that keeps the rules has nothing to hear', () => {
  const { show, violations } = cluster();
  show(1, { term: 1, leads: true, log: [1, 1] });
  show(1, { commit: 2 });
  show(2, { log: [1, 1], commit: 2 });
  show(3, { term: 2, leads: true, log: [1, 1, 2] });
  show(3, { commit: 3 });
  assert.deepEqual(violations, []);
});

test('two leaders of a term are found (Sim-I1)', () => {
  const { show, violations } = cluster();
  show(1, { term: 3, leads: true });
  show(2, { term: 3, leads: true });
  assert.deepEqual(violations, ['Sim-I1: term 3 has two leaders, 1 and 2 (node-2)']);
});

test('entries that are alike with others before them are found (Sim-I2)', () => {
  const { show, violations } = cluster();
  show(1, { term: 3, log: [1, 3] });
  show(2, { term: 3, log: [2, 3] });
  assert.match(violations.join(), /^Sim-I2: entry 2\/3 on node-2/);
});

test('a leader without what was committed before its term is found (Sim-I3)', () => {
  const { show, violations } = cluster();
  show(1, { term: 1, leads: true, log: [1, 1], commit: 2 });
  show(2, { term: 2, leads: true, log: [1] });
  assert.match(violations.join(), /^Sim-I3: node-2 leads term 2 without entry 2\/1/);
});

test('two entries that are committed at one index are found (Sim-I4)', () => {
  const { show, violations } = cluster();
  show(1, { term: 1, leads: true, log: [1], commit: 1 });
  show(2, { term: 2, log: [2], commit: 1 });
  assert.match(violations.join('\n'), /^Sim-I4: node-2 commits 1\/2, others 1\/1$/m);
});

test('a state that the committed entries do not lead to is found (Sim-I4)', () => {
  const { show, violations } = cluster();
  show(1, { log: [1, 1], leads: true, commit: 2, state: { ...emptyState('c'), appliedIndex: 1 } });
  show(2, { log: [1, 1], commit: 2, state: { ...emptyState('c'), appliedIndex: 2 } });
  assert.deepEqual(violations, []);
  show(3, { log: [1, 1], commit: 2, state: { ...emptyState('c'), appliedIndex: 2, aliases: new Map([['x', 'y']]) } });
  assert.deepEqual(violations, ['Sim-I4: the state of node-3 after 2 is another one: /aliases/x: nothing ≠ "y"']);
});

test('a commit that is not on the disks of a majority is found (Sim-I5)', () => {
  const { show, violations } = cluster();
  show(1, { term: 1, leads: true, log: [1], commit: 1 }, [1]);
  assert.deepEqual(violations, ['Sim-I5: node-1 commits 1/1, which is on the disks of 1 of 3 voters']);
});

test('one of two commits by its own disk while it goes on alone, which its next life may be the first to tell, and not before or after (Sim-I5)', () => {
  const { restart, show, violations } = cluster();
  show(1, { pair: true, term: 1, leads: true, log: [1], gone: 2 }, [1]);
  show(1, { commit: 1 }, [1]);
  show(1, { term: 2, log: [1, 2] }, [1]);
  restart(1);
  show(1, { leads: false, gone: null, commit: 2 }, [1]);
  assert.deepEqual(violations, []);
  show(1, { term: 3, leads: true, log: [1, 2, 3] }, [1]);
  show(1, { commit: 3 }, [1]);
  assert.deepEqual(violations, ['Sim-I5: node-1 commits 3/3, which is on the disks of 1 of 2 voters']);
});

test('a node that starts with less than it had applied is found (Sim-I6)', () => {
  const { show, violations, disks } = cluster();
  (disks[0] as { applied: number }).applied = 5;
  show(1, { log: [1], state: { ...emptyState('c'), appliedIndex: 1 } });
  assert.deepEqual(violations, ['Sim-I6: node-1 serves the state after 1, but had applied 5']);
});

test('a leader that commits an entry of an old term by its copies is found (Sim-I8)', () => {
  const { show, violations } = cluster();
  show(1, { term: 2, leads: true, log: [1] });
  show(1, { commit: 1 });
  assert.match(violations.join(), /^Sim-I8: node-1 leads term 2 and commits 1\/1/);
});

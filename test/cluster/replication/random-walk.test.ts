/**
 * A shard's replication under random faults. A failing seed prints its story. Another range: TROUPE_SEED=<first>
 * TROUPE_SEEDS=<how many>, with `npm test -- cluster/replication/random-walk`.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { stepReplication } from '../../../cluster/replication/step.js';
import type { ReplicaState } from '../../../protocols/model/cluster.js';
import { isSameTag } from '../../../protocols/model/shard-log.js';
import { MISTAKES } from './mistakes.js';
import { type ReplicationStepOf, World } from './world.js';

const FIRST = Number(process.env.TROUPE_SEED ?? 1);
const SEEDS = Number(process.env.TROUPE_SEEDS ?? 150);
/** Few points are written again and again. */
const IDS = 6;
const CAREFUL_SEEDS = 4;
/** A mistake that needs no rare course of events shows within so many walks. */
const MISTAKE_SEEDS_MAX = 400;
const STORY_LINES_MAX = 300;

test('no acknowledged write is lost, logs of Active replicas continue one another, and all come to be equal', (t) => {
  const sums: Record<string, number> = {};
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    for (const [name, value] of Object.entries(walkOrTell(seed))) sums[name] = (sums[name] ?? 0) + value;
  }
  t.diagnostic(`${SEEDS} seeds from ${FIRST}: ${JSON.stringify(sums)}`);
});

test('a step changes nothing in place, and does the same again for the same state and input', () => {
  const careful: ReplicationStepOf = (state, input) => {
    const copy = structuredClone(state);
    const stepped = stepReplication(state, input);
    assert.ok(isDeepStrictEqual(copy, state), `${input.kind} changed the state in place`);
    assert.ok(isDeepStrictEqual(stepReplication(copy, input), stepped), `${input.kind} did something else for the same state`);
    return stepped;
  };
  for (let seed = FIRST; seed < FIRST + CAREFUL_SEEDS; seed++) walk(seed, undefined, careful);
});

for (const [name, mistaken] of Object.entries(MISTAKES)) {
  test(`a replica that ${name} is found out`, (t) => {
    for (let seed = 1; seed <= MISTAKE_SEEDS_MAX; seed++) {
      try {
        walk(seed, undefined, mistaken);
      } catch (error) {
        t.diagnostic(`seed ${seed}: ${error instanceof Error ? error.message.split('\n')[0] : error}`);
        return;
      }
    }
    assert.fail(`${MISTAKE_SEEDS_MAX} walks did not find it`);
  });
}

function walkOrTell(seed: number): Readonly<Record<string, number>> {
  try {
    return walk(seed);
  } catch (error) {
    const story: string[] = [];
    assert.throws(() => walk(seed, (line) => story.push(line)));
    throw new Error(`TROUPE_SEED=${seed}: ${error}\n${story.slice(-STORY_LINES_MAX).join('\n')}`, { cause: error });
  }
}

function walk(seed: number, tell?: (line: string) => void, taken: ReplicationStepOf = stepReplication): Readonly<Record<string, number>> {
  const world = new World({ seed, step: taken, ...(tell === undefined ? {} : { tell }) });
  const check = () => checkAll(world);
  for (let turn = 0; turn < 200; turn++) {
    world.runUntil(world.now + world.random() * 4, check);
    const peer = world.pick([1, 2, 3]);
    const node = world.node(peer);
    const what = world.random();
    if (what < 0.6) write(world, world.chance(0.8) ? (world.assignment.leader ?? peer) : peer);
    else if (what < 0.7) world.heal(peer);
    else if (what < 0.76 && node.up) world.crash(peer);
    else if (what < 0.9 && !node.up) world.start(peer);
    else if (what < 0.93) world.makeDead(peer, world.assignment.term);
    else if (what < 0.98) node.replica.compact(2);
    else crashLeader(world, check);
  }
  settle(world, check);
  return world.figures;
}

/** It may have written what nobody else has. */
function crashLeader(world: World, check: () => void): void {
  const { leader, term } = world.assignment;
  if (leader === null) return;
  write(world, leader);
  world.runUntil(world.now + world.random(), check);
  world.crash(leader);
  world.makeDead(leader, term);
}

/** All faults end: soon all replicas are Active and equal, and writes are acknowledged. */
function settle(world: World, check: () => void): void {
  world.tell('all faults end');
  world.faulty = false;
  for (const [peer, { up }] of world.nodes) if (!up) world.start(peer);
  const isWhole = () => [...world.assignment.replicas.values()].every((state: ReplicaState) => state === 'Active');
  for (let turn = 0; turn < 200 && !isWhole(); turn++) {
    world.runUntil(world.now + 20, check);
    for (const peer of world.nodes.keys()) world.heal(peer);
  }
  assert.ok(isWhole(), 'the replicas do not heal');
  world.runUntil(world.now + 100, check);
  const before = world.figures.acknowledged;
  write(world, world.assignment.leader as number);
  world.runUntil(world.now + 60, check);
  assert.equal(world.figures.acknowledged, before + 1, 'a write is not acknowledged when all is well');
  const [first, ...others] = [...world.nodes.values()].map(({ replica }) => replica);
  for (const other of others) {
    assert.deepEqual(other.last, first?.last);
    assert.deepEqual(sorted(other.points), sorted(first?.points ?? new Map()));
  }
}

function write(world: World, peer: number): void {
  if (!world.node(peer).up) return;
  world.figures.written += 1;
  const operations = Array.from({ length: world.chance(0.2) ? 3 : 1 }, () => {
    return Uint8Array.of(Math.floor(world.random() * IDS), world.chance(0.2) ? 0 : 1 + Math.floor(world.random() * 255));
  });
  const until = world.chance(0.5) ? 'logged' : 'applied';
  world.ask(
    peer,
    (caller) => ({ kind: 'write', caller, operation: 'upsertPoints', operations, until, deadlineMs: 0 }),
    (answer) => {
      if ('error' in answer) {
        if (answer.error.code === 'conflict') world.figures.refused += 1;
        else world.figures.open += 1;
        return;
      }
      const numbers = answer.value as number[];
      world.tell(`acknowledged ${numbers.join()} by ${peer}`);
      world.figures.acknowledged += 1;
      const { log } = world.node(peer).replica;
      for (const index of numbers) {
        const tag = log.find((entry) => entry.tag.index === index)?.tag;
        if (tag !== undefined) world.acknowledged.push(tag);
      }
    },
  );
}

function checkAll(world: World): void {
  const { replicas } = world.assignment;
  const active = [...replicas].filter(([, state]) => state === 'Active').map(([peer]) => world.node(peer).replica);
  for (const replica of active) {
    for (const tag of world.acknowledged) {
      assert.ok(
        tag.index <= replica.base.index || replica.has(tag),
        `an Active replica lacks ${tag.index}@${tag.term}, which was acknowledged`,
      );
    }
    for (const other of active) {
      if (other.last.index < replica.last.index || other === replica) continue;
      const at = replica.last;
      assert.ok(at.index < other.base.index || other.has(at), `Active replicas differ at ${at.index}@${at.term}`);
      if (isSameTag(at, other.last)) assert.deepEqual(sorted(replica.points), sorted(other.points), 'equal logs, other points');
    }
  }
}

function sorted(points: ReadonlyMap<number, number>): [number, number][] {
  return [...points].sort(([one], [other]) => one - other);
}

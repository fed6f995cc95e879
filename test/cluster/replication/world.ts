/**
 * Replicas of one shard under random faults: calls are late, lost or lose their answers, nodes crash and come back with an older view of
 * what is agreed, and are made Dead and filled again by transfers, all while clients write.
 */

import type { ReplicationEffect, ReplicationInput, ShardAssignment } from '../../../cluster/replication/messages.js';
import { type ReplicationState, startReplication } from '../../../cluster/replication/state.js';
import { stepReplication as realStep } from '../../../cluster/replication/step.js';
import { type ErrorFacts, errorFacts } from '../../../protocols/errors.js';
import type { ReplicaState } from '../../../protocols/model/cluster.js';
import type { LogTag } from '../../../protocols/model/shard-log.js';
import { TestReplica } from './replica.js';

export type ReplicationStepOf = typeof realStep;

interface TestNode {
  readonly peer: number;
  readonly replica: TestReplica;
  life: number;
  up: boolean;
  state: ReplicationState;
  /** Version of the agreed state that it has seen. */
  seen: number;
  /** What its disk does next, in order. */
  disk: (() => void)[];
  diskBusy: boolean;
}

interface Caller {
  readonly life: number;
  readonly peer: number;
  readonly answered: (answer: { readonly value: unknown } | { readonly error: ErrorFacts }) => void;
}

export interface WorldOptions {
  readonly seed: number;
  readonly step?: ReplicationStepOf;
  readonly tell?: (line: string) => void;
}

export class World {
  readonly nodes = new Map<number, TestNode>();
  /** Every state that was agreed on, in order. */
  readonly agreed: ShardAssignment[] = [];
  readonly acknowledged: LogTag[] = [];
  readonly figures = { written: 0, acknowledged: 0, open: 0, refused: 0, leaders: 0, dead: 0, healed: 0, rewound: 0, events: 0 };
  faulty = true;
  now = 0;
  #events: { at: number; order: number; run: () => void }[] = [];
  #order = 0;
  #callers = new Map<number, Caller>();
  #nextCaller = 1;
  #random: number;
  #transferring = new Set<number>();

  constructor(readonly options: WorldOptions) {
    this.#random = options.seed * 2654435761;
    const peers = [1, 2, 3];
    const states: [number, ReplicaState][] = peers.map((peer) => [peer, 'Active']);
    this.agreed.push({ leader: 1, term: 1, replicas: new Map(states), since: new Map(peers.map((peer) => [peer, 5])), writeFactor: 1 });
    for (const peer of peers) {
      this.nodes.set(peer, {
        peer,
        replica: new TestReplica(),
        life: 0,
        up: false,
        state: startReplication(),
        seen: 0,
        disk: [],
        diskBusy: false,
      });
      this.start(peer);
    }
  }

  get assignment(): ShardAssignment {
    return this.agreed.at(-1) as ShardAssignment;
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  random(): number {
    // Mulberry32.
    this.#random = (this.#random + 0x6d2b79f5) | 0;
    let value = Math.imul(this.#random ^ (this.#random >>> 15), 1 | this.#random);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.random() * values.length)] as Value;
  }

  after(delay: number, run: () => void): void {
    this.#events.push({ at: this.now + delay, order: this.#order++, run });
  }

  /** Carries out the next event; false when there is none. */
  next(): boolean {
    if (this.#events.length === 0) return false;
    let best = 0;
    this.#events.forEach((event, at) => {
      const other = this.#events[best] as { at: number; order: number };
      if (event.at < other.at || (event.at === other.at && event.order < other.order)) best = at;
    });
    const [event] = this.#events.splice(best, 1);
    if (event === undefined) return false;
    this.now = event.at;
    this.figures.events += 1;
    event.run();
    return true;
  }

  runUntil(time: number, check: () => void): void {
    this.after(time - this.now, () => {});
    while (this.now < time && this.next()) check();
  }

  start(peer: number): void {
    const node = this.node(peer);
    node.life += 1;
    node.up = true;
    node.state = startReplication();
    node.disk = [];
    node.diskBusy = false;
    // What it has seen last need not be on its disk.
    node.seen = Math.max(0, node.seen - (this.chance(0.5) ? 0 : Math.floor(this.random() * 3)));
    this.tell(`start ${peer} at ${node.replica.last.index}@${node.replica.last.term}, view ${node.seen}`);
    this.input(peer, { kind: 'assigned', self: peer, assignment: this.agreed[node.seen] as ShardAssignment, isSettled: false });
    this.input(peer, { kind: 'opened' });
    this.look(peer);
  }

  crash(peer: number): void {
    const node = this.node(peer);
    if (!node.up) return;
    this.tell(`crash ${peer}`);
    node.up = false;
    node.life += 1;
    for (const [number, caller] of this.#callers) if (caller.peer === peer) this.#callers.delete(number);
  }

  node(peer: number): TestNode {
    return this.nodes.get(peer) as TestNode;
  }

  input(peer: number, input: ReplicationInput): void {
    const node = this.node(peer);
    if (!node.up) return;
    const before = node.state.role.kind;
    const { effects, state } = (this.options.step ?? realStep)(node.state, input);
    node.state = state;
    if (state.role.kind !== before) {
      this.tell(`  ${peer} is ${state.role.kind}`);
      if (state.role.kind === 'Leading') this.figures.leaders += 1;
    }
    for (const effect of effects) this.perform(node, effect);
  }

  /** What a client of this node asks for. */
  ask(peer: number, make: (caller: number) => ReplicationInput, answered: Caller['answered']): void {
    const number = this.#nextCaller++;
    this.#callers.set(number, { life: this.node(peer).life, peer, answered });
    this.input(peer, make(number));
  }

  /** What is agreed next; false when it is refused. */
  agree(change: (state: ShardAssignment) => Map<number, ReplicaState> | null): boolean {
    const now = this.assignment;
    const replicas = change(now);
    if (replicas === null) return false;
    let { leader, term } = now;
    if (leader === null || replicas.get(leader) !== 'Active') {
      const active = [...replicas].filter(([, state]) => state === 'Active').map(([peer]) => peer);
      leader = active.length === 0 ? null : (active[term % active.length] as number);
      if (leader !== null) term += 1;
    }
    this.agreed.push({ ...now, leader, term, replicas });
    this.tell(
      `agreed ${this.agreed.length - 1}: ${leader} in ${term}, ${[...replicas].map(([peer, state]) => `${peer} ${state}`).join(', ')}`,
    );
    for (const peer of this.nodes.keys()) this.look(peer);
    return true;
  }

  makeDead(peer: number, term: number): void {
    this.agree(({ replicas, term: known }) => {
      const current = replicas.get(peer);
      const other = [...replicas].some(([each, state]) => each !== peer && state === 'Active');
      if (known !== term || current === 'Dead' || !other) return null;
      this.figures.dead += 1;
      return new Map(replicas).set(peer, 'Dead');
    });
  }

  tell(line: string): void {
    this.options.tell?.(`${this.now.toFixed(1)} ${line}`);
  }

  /** A transfer to a Dead replica, as far as this time's faults let it. */
  heal(peer: number): void {
    if (this.assignment.replicas.get(peer) !== 'Dead' || this.#transferring.has(peer)) return;
    const { leader } = this.assignment;
    if (leader === null || !this.agree(({ replicas }) => new Map(replicas).set(peer, 'Partial'))) return;
    const { term } = this.assignment;
    this.#transferring.add(peer);
    const failed = (error: ErrorFacts) => {
      this.tell(`transfer to ${peer} fails: ${error.detail}`);
      this.after(5, () => {
        this.#transferring.delete(peer);
        this.agree(({ replicas }) => (replicas.get(peer) === 'Partial' ? new Map(replicas).set(peer, 'Dead') : null));
      });
    };
    const then = (make: (caller: number) => ReplicationInput, done: (value: unknown) => void) => {
      if (!this.node(leader).up) failed({ code: 'unavailable', detail: 'the leader is down' });
      else {
        const life = this.node(leader).life;
        let isOver = false;
        this.after(200, () => {
          if (!isOver && life !== this.node(leader).life) failed({ code: 'unavailable', detail: 'the leader has crashed' });
          isOver = true;
        });
        this.ask(leader, make, (answer) => {
          if (isOver) return;
          isOver = true;
          if ('error' in answer) failed(answer.error);
          else done(answer.value);
        });
      }
    };
    const finish = () => {
      // Also when whoever proposed it is gone by then.
      this.after(this.delay() * 4, () => {
        this.#transferring.delete(peer);
        const done = this.agree(({ replicas, term: now }) => {
          return now === term && replicas.get(peer) === 'Partial' ? new Map(replicas).set(peer, 'Active') : null;
        });
        if (done) this.figures.healed += 1;
        else this.agree(({ replicas }) => (replicas.get(peer) === 'Partial' ? new Map(replicas).set(peer, 'Dead') : null));
      });
    };
    const compare = () => {
      then(
        (caller) => ({ kind: 'compare', caller, peer }),
        (value) => {
          const { buckets } = value as { buckets: number[] };
          if (buckets.length === 0) then((caller) => ({ kind: 'require', caller, peer }), finish);
          else then((caller) => ({ kind: 'fill', caller, peer, buckets: buckets.slice(0, 2) }), compare);
        },
      );
    };
    const attach = (mayReset: boolean) => {
      then(
        (caller) => ({ kind: 'attach', caller, peer, mayReset }),
        (value) => {
          const { how } = value as { how: string };
          if (how === 'rewound') this.figures.rewound += 1;
          if (how === 'refused') attach(true);
          else compare();
        },
      );
    };
    this.after(this.delay() * 2, () => attach(this.chance(0.5)));
  }

  delay(): number {
    return this.faulty && this.chance(0.05) ? 5 + this.random() * 30 : 0.1 + this.random();
  }

  /** The node sees what is agreed, one state after the other, some time. */
  private look(peer: number): void {
    const { life } = this.node(peer);
    this.after(this.delay(), () => {
      const node = this.node(peer);
      if (node.life !== life || node.seen >= this.agreed.length - 1) return;
      node.seen += 1;
      this.input(peer, { kind: 'assigned', self: peer, assignment: this.agreed[node.seen] as ShardAssignment, isSettled: false });
      this.look(peer);
    });
  }

  private perform(node: TestNode, effect: ReplicationEffect): void {
    const { life, peer, replica } = node;
    const report = (input: ReplicationInput) => {
      if (node.life === life) this.input(peer, input);
    };
    switch (effect.kind) {
      case 'tickLater':
        this.after(1, () => report({ kind: 'tick' }));
        break;
      case 'log':
        this.tell(`  ${peer}: ${effect.text}`);
        break;
      case 'locate':
        this.onDisk(node, () => report({ kind: 'located', run: effect.run, last: replica.last }));
        break;
      case 'barrier': {
        const newest = this.agreed.length - 1;
        this.after(this.delay(), () => {
          if (node.life !== life) return;
          node.seen = Math.max(node.seen, newest);
          report({ kind: 'barrierPassed', run: effect.run, assignment: this.agreed[node.seen] as ShardAssignment });
        });
        break;
      }
      case 'logWrite':
        this.onDisk(node, () => {
          const { run, write } = effect;
          try {
            const entries = replica.write(effect.as, effect.input.operations);
            report({ kind: 'logged', run, write, entries, failure: null });
          } catch (error) {
            report({ kind: 'logFailed', run, write, error: errorFacts(error) });
          }
        });
        break;
      case 'takeOver':
        this.onDisk(node, () => {
          try {
            replica.append(effect.previous, effect.entries);
            report({ kind: 'tookOver', run: effect.run, last: replica.last });
          } catch (error) {
            report({ kind: 'takeOverFailed', run: effect.run, error: errorFacts(error) });
          }
        });
        break;
      case 'read':
        this.onDisk(node, () => {
          const { call, peer: other, run } = effect;
          report({ kind: 'readDone', run, peer: other, call, part: replica.after(effect.after) });
        });
        break;
      case 'fetch':
        this.onDisk(node, () => {
          report({ kind: 'fetched', run: effect.run, peer: effect.peer, job: effect.job, value: replica.fetch(effect.fetch) });
        });
        break;
      case 'call':
        this.call(node, effect, report);
        break;
      case 'carryOut':
        this.onDisk(node, () => {
          try {
            this.answer(effect.caller, { value: replica.carryOut(effect.call) });
          } catch (error) {
            this.answer(effect.caller, { error: errorFacts(error) });
          }
        });
        break;
      case 'acknowledge':
        this.answer(effect.input.caller, { value: effect.numbers });
        break;
      case 'answer':
        this.answer(effect.caller, { value: effect.answer });
        break;
      case 'refuse':
        this.answer(effect.caller, { error: effect.error });
        break;
      case 'judgeAlone':
        this.after(0, () => report({ kind: 'aloneJudged', run: effect.run, peer: effect.peer, isAlone: false }));
        break;
      case 'proposeDead':
        this.after(this.delay(), () => {
          if (!this.faulty || this.chance(0.8)) this.makeDead(effect.peer, effect.term);
          report({ kind: 'deathProposed', peer: effect.peer, error: null });
        });
        break;
      case 'noteAhead':
        throw new Error('nobody is alone here');
      case 'findMissing':
        throw new Error('nobody asks for points here');
      default:
        effect satisfies never;
    }
  }

  /** A call may be lost, be late, or lose its answer; the caller is told after a while. */
  private call(
    from: TestNode,
    { call, term, peer, request, run }: Extract<ReplicationEffect, { kind: 'call' }>,
    report: (input: ReplicationInput) => void,
  ): void {
    let isOver = false;
    const end = (input: ReplicationInput) => {
      if (!isOver) report(input);
      isOver = true;
    };
    const fail = (error: ErrorFacts, isLost: boolean) => end({ kind: 'callFailed', run, peer, call, error, isLost });
    const lost: ErrorFacts = { code: 'timeout', detail: 'no answer' };
    this.after(15, () => fail(lost, true));
    if (this.faulty && this.chance(0.03)) return;
    const heard = { ...request, shard: { collection: 'c', uid: 1, shardId: 0 }, term, leader: from.peer } as Extract<
      ReplicationInput,
      { kind: 'called' }
    >['call'];
    const arrive = () => {
      const target = this.node(peer);
      if (!target.up) {
        this.after(this.delay(), () => fail({ code: 'unavailable', detail: 'nobody is there' }, false));
        return;
      }
      this.ask(
        peer,
        (caller) => ({ kind: 'called', caller, from: from.peer, call: heard }),
        (answer) => {
          if (this.faulty && this.chance(0.03)) return;
          this.after(this.delay(), () => {
            if ('error' in answer) fail(answer.error, false);
            else end({ kind: 'answered', run, peer, call, answer: answer.value as never });
          });
        },
      );
    };
    this.after(this.delay(), arrive);
    if (this.faulty && this.chance(0.02)) this.after(this.delay() * 10, arrive);
  }

  private answer(caller: number, answer: Parameters<Caller['answered']>[0]): void {
    const found = this.#callers.get(caller);
    if (found === undefined) return;
    this.#callers.delete(caller);
    found.answered(answer);
  }

  private onDisk(node: TestNode, run: () => void): void {
    node.disk.push(run);
    this.turnDisk(node);
  }

  private turnDisk(node: TestNode): void {
    const { life } = node;
    if (node.diskBusy || node.disk.length === 0) return;
    node.diskBusy = true;
    this.after(0.1 + this.random() * 0.5, () => {
      if (node.life !== life) return;
      node.diskBusy = false;
      node.disk.shift()?.();
      this.turnDisk(node);
    });
  }
}

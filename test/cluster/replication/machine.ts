/** One replica under a test's hands: it is given inputs, and what it causes is looked at. */

import type { PeerCall, ReplicationEffect, ReplicationInput, ShardAssignment, WriteInput } from '../../../cluster/replication/messages.js';
import { type ReplicationState, startReplication } from '../../../cluster/replication/state.js';
import { stepReplication } from '../../../cluster/replication/step.js';
import type { ReplicaState } from '../../../protocols/model/cluster.js';
import { type LogTag, NO_TAG, type ShardEntry } from '../../../protocols/model/shard-log.js';

export const SELF = 1;

type EffectOf<Kind extends ReplicationEffect['kind']> = Extract<ReplicationEffect, { kind: Kind }>;

export function assignment(replicas: Readonly<Record<number, ReplicaState>>, change: Partial<ShardAssignment> = {}): ShardAssignment {
  const states = Object.entries(replicas).map(([peer, state]): [number, ReplicaState] => [Number(peer), state]);
  return { leader: SELF, term: 4, replicas: new Map(states), since: new Map(), writeFactor: 1, ...change };
}

export function tag(index: number, term = 4): LogTag {
  return { peer: SELF, term, index };
}

export class Machine {
  state: ReplicationState = startReplication();
  effects: ReplicationEffect[] = [];
  #caller = 100;

  /** What it causes is all that `effects` has afterwards. */
  give(input: ReplicationInput): this {
    const stepped = stepReplication(this.state, input);
    this.state = stepped.state;
    this.effects = [...stepped.effects];
    return this;
  }

  get role(): ReplicationState['role']['kind'] {
    return this.state.role.kind;
  }

  /** Of the present role. */
  get run(): number {
    return 'run' in this.state.role ? this.state.role.run : 0;
  }

  assign(assigned: ShardAssignment | null, isSettled = true): this {
    return this.give({ kind: 'assigned', self: SELF, assignment: assigned, isSettled });
  }

  /** Opened in this term, and Locating. */
  opened(assigned: ShardAssignment): this {
    return this.assign(assigned).give({ kind: 'opened' });
  }

  /** It has logged in this term before: it leads at once, and the others are `position`. */
  leading(assigned: ShardAssignment, last: LogTag = tag(10)): this {
    this.opened(assigned).give({ kind: 'barrierPassed', run: this.run, assignment: assigned });
    this.give({ kind: 'located', run: this.run, last });
    for (const { call, peer, request } of this.all('call')) {
      if (request.kind !== 'position') continue;
      this.answer(peer, call, { kind: 'position', last, base: NO_TAG });
      const read = this.all('read').find((each) => each.peer === peer);
      if (read !== undefined) this.give({ kind: 'readDone', run: this.run, peer, call: read.call, part: { kind: 'entries', entries: [] } });
    }
    return this;
  }

  answer(peer: number, call: number, answer: Extract<ReplicationInput, { kind: 'answered' }>['answer']): this {
    return this.give({ kind: 'answered', run: this.run, peer, call, answer });
  }

  write(change: Partial<WriteInput> = {}): number {
    const caller = this.#caller++;
    const operations = [Uint8Array.of(1)];
    this.give({ kind: 'write', caller, operation: 'upsertPoints', operations, until: 'logged', deadlineMs: 0, ...change });
    return caller;
  }

  /** A write that is on the own disk with these indexes. */
  written(indexes: readonly number[], change: Partial<WriteInput> = {}): number {
    const caller = this.write(change);
    const [effect] = this.all('logWrite');
    if (effect === undefined) throw new Error('nothing is logged');
    this.logged(effect.write, indexes);
    return caller;
  }

  logged(write: number, indexes: readonly number[]): this {
    const entries: ShardEntry[] = indexes.map((index) => ({ tag: tag(index), operation: Uint8Array.of(1) }));
    return this.give({ kind: 'logged', run: this.run, write, entries, failure: null });
  }

  all<Kind extends ReplicationEffect['kind']>(kind: Kind): EffectOf<Kind>[] {
    return this.effects.filter((effect): effect is EffectOf<Kind> => effect.kind === kind);
  }

  /** The call to a peer among the newest effects. */
  callTo<Kind extends PeerCall['kind']>(
    peer: number,
    kind: Kind,
  ): { readonly call: number; readonly request: Extract<PeerCall, { kind: Kind }> } {
    const found = this.all('call').find((each) => each.peer === peer && each.request.kind === kind);
    if (found === undefined) throw new Error(`peer ${peer} is not called for ${kind}: ${JSON.stringify(this.effects)}`);
    return found as unknown as { readonly call: number; readonly request: Extract<PeerCall, { kind: Kind }> };
  }

  ticks(count: number): this {
    const effects: ReplicationEffect[] = [];
    for (let i = 0; i < count; i++) effects.push(...this.give({ kind: 'tick' }).effects);
    this.effects = effects;
    return this;
  }

  /** Callers that were acknowledged by the newest effects. */
  get acknowledged(): number[] {
    return this.all('acknowledge').map(({ input }) => input.caller);
  }
}

/**
 * Whether a replica has what the agreed state says of it. One that is empty although the cluster has counted on it since before this
 * process began may have lost its files: served, it would answer as if nothing were all. It is believed once every other Active replica
 * is as empty; else its leader fills it, or it is Dead and healed.
 */

import type { ReplicaKey } from '../../storage/engine/messages.js';
import type { NodeServices } from '../node/services.js';
import type { Clock, Log } from '../runtime/ports.js';
import type { AssignedShard, Assignment } from './assignments.js';

export interface ProofParts {
  readonly key: ReplicaKey;
  readonly shard: AssignedShard;
  readonly services: Pick<NodeServices, 'assignments' | 'calls' | 'engine' | 'propose'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** An operation that is on its way comes in less. */
const BEHIND_MS = 2000;
const ASK_MS = 2000;
const PROPOSE_MS = 5000;
export const PROVE_AGAIN_MS = 250;

export class Proof {
  #proved = false;
  #asking = false;
  /** Since when others are known to have more; null: they are not. */
  #behindSinceMs: number | null = null;

  constructor(private readonly parts: ProofParts) {}

  /** False while nobody knows whether the replica, as it is open, is all there. */
  get holds(): boolean {
    this.#proved ||= this.#isPlain();
    // What nothing is agreed on, nobody counts on.
    return this.#proved || this.parts.services.assignments.of(this.parts.shard) === null;
  }

  /** Its files have been opened anew. */
  begin(): void {
    this.#proved = false;
    this.#behindSinceMs = null;
  }

  /** Asks the other replicas. True where that is to be done again after `PROVE_AGAIN_MS`. */
  async isLeftToAsk(): Promise<boolean> {
    if (this.#asking) return false;
    const { assignments } = this.parts.services;
    const assignment = assignments.of(this.parts.shard);
    if (this.holds || assignment === null) return false;
    this.#asking = true;
    try {
      const others = othersActive(assignment, assignments.peerId);
      const ticks = await Promise.all(others.map((peer) => this.#tickOf(peer, assignment.term)));
      if (this.holds) return false;
      if (ticks.some((tick) => tick !== null && tick > 0)) await this.#fallBehind(assignment);
      else if (ticks.every((tick, at) => tick !== null || assignments.isAloneWithout(others[at] as number))) this.#proved = true;
      return !this.#proved;
    } finally {
      this.#asking = false;
    }
  }

  #isPlain(): boolean {
    const { key, services, shard } = this.parts;
    const stats = services.engine.stats(key);
    if (stats === null) return false;
    if (stats.points > 0 || stats.position.last.tick > 0) return true;
    const { assignments } = services;
    const assignment = assignments.of(shard);
    const since = assignment?.since.get(assignments.peerId);
    if (assignment === null || since === undefined) return false;
    return since > assignments.firstIndex || othersActive(assignment, assignments.peerId).length === 0;
  }

  /** Of its newest operation; null: it does not say. */
  #tickOf(peer: number, clock: number): Promise<number | null> {
    const { services, shard } = this.parts;
    return services.calls.call(peer, { kind: 'position', shard, clock }, ASK_MS).then(
      (answer) => (answer.kind === 'position' ? answer.last.tick : null),
      () => null,
    );
  }

  async #fallBehind({ replicas, term }: Assignment): Promise<void> {
    const { clock, key, log, services, shard } = this.parts;
    const { peerId } = services.assignments;
    this.#behindSinceMs ??= clock.nowMs();
    if (clock.nowMs() - this.#behindSinceMs < BEHIND_MS || replicas.get(peerId) !== 'Active') return;
    log.warn(`${key} has nothing, and other replicas have something: it is to be Dead, and another one has to fill it`);
    const change = { ...shard, peerId, from: 'Active', to: 'Dead', clock: term } as const;
    await services.propose({ kind: 'setReplicaStates', changes: [change] }, PROPOSE_MS).catch((error: unknown) => {
      log.info(`that ${key} is Dead is not agreed: ${String(error)}`);
    });
  }
}

function othersActive({ replicas }: Assignment, self: number): number[] {
  return [...replicas].filter(([peer, state]) => peer !== self && state === 'Active').map(([peer]) => peer);
}

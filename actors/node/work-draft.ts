/** A node's state while one step changes it: each of its maps is copied once, however many folders the step changes. */

import type { ClusterWork } from './cluster-work.js';
import type { NodeEffect } from './messages.js';
import { type ActiveNode, type CollectionPhase, type StartingNode, withPhase } from './state.js';

export type InCluster = (StartingNode | ActiveNode) & { readonly cluster: ClusterWork };

type Kept = 'holdings' | 'running' | 'owed' | 'troubles';
type ValueOf<Map> = Map extends ReadonlyMap<string, infer Value> ? Value : never;

export class WorkDraft {
  readonly effects: NodeEffect[] = [];
  #state: InCluster;
  /** Maps that this step has made and that no other code has seen yet. */
  readonly #own = new Set<unknown>();

  constructor(state: InCluster) {
    this.#state = state;
  }

  get state(): InCluster {
    return this.#state;
  }

  get work(): ClusterWork {
    return this.#state.cluster;
  }

  emit(effect: NodeEffect): void {
    this.effects.push(effect);
  }

  change(work: Partial<ClusterWork>): void {
    this.#state = { ...this.#state, cluster: { ...this.#state.cluster, ...work } };
  }

  replace(state: InCluster): void {
    this.#state = state;
  }

  /** Sets a value of a folder. value: null to remove it. */
  set<Name extends Kept>(name: Name, folder: string, value: ValueOf<ClusterWork[Name]> | null): void {
    const map = this.work[name] as ReadonlyMap<string, ValueOf<ClusterWork[Name]>>;
    if (value === null ? !map.has(folder) : map.get(folder) === value) return;
    const own = this.#ownCopy(map);
    if (own !== map) this.change({ [name]: own });
    if (value === null) own.delete(folder);
    else own.set(folder, value);
  }

  setPhase(folder: string, phase: CollectionPhase): void {
    this.#state = withPhase(this.#state, folder, phase);
  }

  #ownCopy<Value>(map: ReadonlyMap<string, Value>): Map<string, Value> {
    if (this.#own.has(map)) return map as Map<string, Value>;
    const copy = new Map(map);
    this.#own.add(copy);
    return copy;
  }
}

/**
 * What a node of a cluster knows of its work: what is desired, what it has, which moves are being made, and what it owes.
 * Kept by folder; aliases are kept under `ALIASES`.
 */

import type { AliasMap } from '../../protocols/model/alias.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { Belonging, CarriedOut, Desired } from './desired.js';
import type { Holding, Wanted } from './reconcile.js';

/** No folder is called so. */
export const ALIASES = '';

export interface ClusterWork {
  /** Null until consensus knows its state. */
  readonly desired: Desired | null;
  /** Of `desired`, by folder. */
  readonly wanted: ReadonlyMap<string, Wanted>;
  readonly holdings: ReadonlyMap<string, Holding>;
  /** Moves that are being made. */
  readonly running: ReadonlyMap<string, RunningMove>;
  /** Index from which on something may be desired that is not there. What failed is not among it. */
  readonly owed: ReadonlyMap<string, number>;
  readonly troubles: ReadonlyMap<string, Trouble>;
  readonly told: CarriedOut | null;
  readonly adopting: Adopting | null;
}

export interface RunningMove {
  readonly kind: 'create' | 'reshape' | 'delete' | 'setAside' | 'adopt';
  /** Of the `Desired` that it was made for. */
  readonly index: number;
  /** `config.json` when it succeeds; null where it goes. */
  readonly holding: Holding | null;
  readonly reason: string;
}

/** What is desired is not there, and that is known. */
export interface Trouble {
  readonly detail: string;
  /** Moves that failed in a row; 0 when there is none to make. */
  readonly attempts: number;
  /** Its replicas do not serve; all else is as desired. */
  readonly ofReplicas: boolean;
  /** A time is set at which it is tried again. */
  readonly waits: boolean;
}

/** Collections become those of a cluster that is being founded. */
export interface Adopting {
  /** By folder. */
  readonly adoption: ReadonlyMap<string, Belonging>;
  readonly replyTo: ReplyTo<boolean>;
  /** Folders that have not been written; null: it has not begun. */
  readonly left: ReadonlySet<string> | null;
}

export function clusterWork(holdings: ReadonlyMap<string, Holding>): ClusterWork {
  const none = new Map();
  return { desired: null, wanted: none, holdings, running: none, owed: none, troubles: none, told: null, adopting: null };
}

/** How far what was desired is there; null while nothing is. Its index never falls. */
export function carriedOut(work: ClusterWork): CarriedOut | null {
  if (work.desired === null) return null;
  const index = Math.max(Math.min(work.desired.index, ...[...work.owed.values()].map((from) => from - 1)), work.told?.index ?? -1);
  if (index < 0) return null;
  const failures = [...work.troubles]
    .filter(([folder]) => folder !== ALIASES)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([folder, { detail, ofReplicas }]) => {
      const named = work.wanted.get(folder);
      const held = work.holdings.get(folder);
      const failure = { collection: named?.name ?? held?.name ?? folder, uid: named?.uid ?? held?.belonging?.uid ?? 0, detail };
      const shards: readonly (number | null)[] = ofReplicas ? (named?.shards ?? []) : [null];
      return shards.map((shardId) => ({ ...failure, shardId }));
    });
  return { index, failures };
}

export function sameWanted(one: Wanted | null, other: Wanted | null): boolean {
  if (one === null || other === null) return one === other;
  return one.uid === other.uid && one.revision === other.revision && one.shards.join() === other.shards.join();
}

export function sameAliases(one: AliasMap, other: AliasMap): boolean {
  return one.size === other.size && [...one].every(([alias, collection]) => other.get(alias) === collection);
}

export function sameCarriedOut(one: CarriedOut, other: CarriedOut): boolean {
  const text = (said: CarriedOut) =>
    said.failures.map(({ collection, uid, shardId, detail }) => `${collection}\n${uid}\n${shardId}\n${detail}`).join('\n\n');
  return one.index === other.index && text(one) === text(other);
}

/** A copy of `map` with one entry changed, or without it (null). */
export function changed<Value>(map: ReadonlyMap<string, Value>, key: string, value: Value | null): ReadonlyMap<string, Value> {
  if (value === null && !map.has(key)) return map;
  const copy = new Map(map);
  if (value === null) copy.delete(key);
  else copy.set(key, value);
  return copy;
}

/**
 * A cluster node's work: what is desired, what it has, which moves are under way, and what it owes. Kept by folder; aliases are kept under
 * `ALIASES`.
 */

import type { AliasMap } from '../../protocols/model/alias.js';
import type { Belonging, CarriedOut, Desired } from '../context/desired.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { FaultOf, Holding, Wanted } from './reconcile.js';

/** The key of aliases; no folder has this name. */
export const ALIASES = '';

export interface ClusterWork {
  /** The desired state; null until consensus knows its state. */
  readonly desired: Desired | null;
  /** The collections of `desired`, by folder. */
  readonly wanted: ReadonlyMap<string, Wanted>;
  readonly holdings: ReadonlyMap<string, Holding>;
  /** Moves under way, by folder. */
  readonly running: ReadonlyMap<string, RunningMove>;
  /** For each folder, the index from which something desired may be missing. Failures are not included. */
  readonly owed: ReadonlyMap<string, number>;
  readonly troubles: ReadonlyMap<string, Trouble>;
  /**
   * Index of the newest entry that something here was made for. After a crash consensus may know less for a while, and then less is
   * desired.
   */
  readonly latest: number;
  readonly told: CarriedOut | null;
  /** `troubles` as of the last report. */
  readonly toldTroubles: ReadonlyMap<string, Trouble> | null;
  /** A timer is set for the next report of failures. */
  readonly tellsLater: boolean;
  readonly adopting: Adopting | null;
}

export interface RunningMove {
  readonly kind: 'create' | 'reshape' | 'delete' | 'setAside' | 'adopt';
  /** Index of the `Desired` that the move was made for. */
  readonly index: number;
  /** The content of `config.json` after success; null if the collection is removed. */
  readonly holding: Holding | null;
  readonly reason: string;
}

/** A failure: something desired is missing. */
export interface Trouble {
  readonly detail: string;
  /** Number of consecutive failed moves; 0 if there is no move to make. */
  readonly attempts: number;
  readonly of: FaultOf;
  /** A timer is set for the next try. */
  readonly waits: boolean;
}

/** The adoption of collections into a cluster that is being founded. */
export interface Adopting {
  /** The collections to adopt, by folder. */
  readonly adoption: ReadonlyMap<string, Belonging>;
  readonly replyTo: ReplyTo<boolean>;
  /** Folders that have not been written yet; null until the adoption begins. */
  readonly left: ReadonlySet<string> | null;
}

export function clusterWork(holdings: ReadonlyMap<string, Holding>): ClusterWork {
  const none = new Map();
  let latest = 0;
  for (const { belonging } of holdings.values()) latest = Math.max(latest, belonging?.uid ?? 0, belonging?.index ?? 0);
  return {
    desired: null,
    wanted: none,
    holdings,
    running: none,
    owed: none,
    troubles: none,
    latest,
    told: null,
    toldTroubles: null,
    tellsLater: false,
    adopting: null,
  };
}

/** The report of everything up to `index`. */
export function carriedOut(work: ClusterWork, index: number): CarriedOut {
  const failures = [...work.troubles]
    .filter(([folder]) => folder !== ALIASES)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([folder, { detail, of }]) => {
      const named = work.wanted.get(folder);
      const held = work.holdings.get(folder);
      const failure = { collection: named?.name ?? held?.name ?? folder, uid: named?.uid ?? held?.belonging?.uid ?? 0, detail };
      return shardsOf(of, named?.shards ?? []).map((shardId) => ({ ...failure, shardId }));
    });
  return { index, failures };
}

/** As `CarriedOut` has them. wanted: the shards that are desired here. */
function shardsOf(of: FaultOf, wanted: readonly number[]): readonly (number | null)[] {
  if (of === 'collection') return [null];
  return of === 'replicas' ? wanted : wanted.filter((shardId) => of.includes(shardId));
}

export function sameWanted(one: Wanted | null, other: Wanted | null): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.uid === other.uid &&
    one.revision === other.revision &&
    one.shards.join() === other.shards.join() &&
    one.since.join() === other.since.join()
  );
}

export function sameAliases(one: AliasMap, other: AliasMap): boolean {
  return one.size === other.size && [...one].every(([alias, collection]) => other.get(alias) === collection);
}

export function sameFailures(one: CarriedOut, other: CarriedOut): boolean {
  if (one.failures.length !== other.failures.length) return false;
  return one.failures.every(({ collection, detail, shardId, uid }, at) => {
    const its = other.failures[at];
    return collection === its?.collection && detail === its.detail && shardId === its.shardId && uid === its.uid;
  });
}

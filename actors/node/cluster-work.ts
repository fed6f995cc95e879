/**
 * What a node of a cluster knows of its work: what is desired, what it has, which moves are being made, and what it owes.
 * Kept by folder; aliases are kept under `ALIASES`.
 */

import type { AliasMap } from '../../protocols/model/alias.js';
import type { Belonging, CarriedOut, Desired } from '../context/desired.js';
import type { ReplyTo } from '../runtime/behaviour.js';
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
  /** The newest entry that something here was made for: consensus may know less after a crash, and then less is desired. */
  readonly latest: number;
  readonly told: CarriedOut | null;
  /** `troubles` as of then. */
  readonly toldTroubles: ReadonlyMap<string, Trouble> | null;
  /** A time is set to tell of other failures. */
  readonly tellsLater: boolean;
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

/** What is told of everything up to `index`. */
export function carriedOut(work: ClusterWork, index: number): CarriedOut {
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

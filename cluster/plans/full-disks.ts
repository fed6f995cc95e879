/**
 * Which leads on full disks rest, as they could not be handed over: by a growing pause, in ticks. What is known of a peer is forgotten when its
 * disk has room again.
 */

import type { PeerId } from '../../protocols/model/cluster.js';
import { afterTry, type Tries } from '../transfer/tries.js';
import type { HandOver } from './leadership.js';

/** By shard and leader. */
export type FullTries = ReadonlyMap<string, Tries & { readonly from: PeerId }>;

export const NO_FULL_TRIES: FullTries = new Map();

const PAUSES = { ticksMin: 5, ticksMax: 300 };

/** After a hand-over that has ended at `tick`. */
export function noteFullTry(tries: FullTries, handOver: HandOver, failed: boolean, tick: number): FullTries {
  const name = nameOf(handOver);
  const known = tries.get(name);
  if (known === undefined && !failed) return tries;
  const next = new Map(tries);
  if (failed) next.set(name, { ...afterTry(known, tick, PAUSES), from: handOver.from });
  else next.delete(name);
  return next;
}

/** Without those of peers that are not full. */
export function stillFull(tries: FullTries, full: ReadonlySet<PeerId>): FullTries {
  if ([...tries.values()].every(({ from }) => full.has(from))) return tries;
  return new Map([...tries].filter(([, { from }]) => full.has(from)));
}

export function rests(tries: FullTries, handOver: HandOver, tick: number): boolean {
  const known = tries.get(nameOf(handOver));
  return known !== undefined && tick < known.nextTick;
}

function nameOf({ from, shardId, uid }: HandOver): string {
  return `${uid}/${shardId}/${from}`;
}

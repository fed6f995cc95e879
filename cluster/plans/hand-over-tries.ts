/**
 * Which leads rest, as they could not be handed over although their peers are drained or their disks are full: by a growing pause, in ticks. What
 * is known of a peer is forgotten when it has no such reason any more.
 */

import type { PeerId } from '../../protocols/model/cluster.js';
import { afterTry, type Tries } from '../transfer/tries.js';
import type { HandOver } from './leadership.js';

/** Why a lead has to go from a peer. */
export type HandOverNeed = 'leaving' | 'full';

/** By reason, shard and leader. */
export type HandOverTries = ReadonlyMap<string, Tries & { readonly need: HandOverNeed; readonly from: PeerId }>;

export const NO_HAND_OVER_TRIES: HandOverTries = new Map();

const PAUSES = { ticksMin: 5, ticksMax: 300 };

/** After a hand-over that has ended at `tick`. */
export function noteHandOverTry(
  tries: HandOverTries,
  need: HandOverNeed,
  handOver: HandOver,
  failed: boolean,
  tick: number,
): HandOverTries {
  const name = nameOf(need, handOver);
  const known = tries.get(name);
  if (known === undefined && !failed) return tries;
  const next = new Map(tries);
  if (failed) next.set(name, { ...afterTry(known, tick, PAUSES), need, from: handOver.from });
  else next.delete(name);
  return next;
}

/** Without those of peers that have no such reason any more. */
export function stillNeeded(tries: HandOverTries, hasNeed: (need: HandOverNeed, from: PeerId) => boolean): HandOverTries {
  const left = [...tries].filter(([, { from, need }]) => hasNeed(need, from));
  return left.length === tries.size ? tries : new Map(left);
}

export function rests(tries: HandOverTries, need: HandOverNeed, handOver: HandOver, tick: number): boolean {
  const known = tries.get(nameOf(need, handOver));
  return known !== undefined && tick < known.nextTick;
}

function nameOf(need: HandOverNeed, { from, shardId, uid }: HandOver): string {
  return `${need}/${uid}/${shardId}/${from}`;
}

/** Why a collection is in its state, in a sentence. */

import type { CollectionCluster, CollectionInfo, Optimizations } from './api-types.js';
import { count } from './format.js';

export type Tone = 'good' | 'busy' | 'wait' | 'bad';

export interface CollectionCondition {
  readonly tone: Tone;
  readonly sentence: string;
}

/** cluster, optimizations: undefined where they are not known yet. */
export function conditionOf(info: CollectionInfo, cluster?: CollectionCluster, optimizations?: Optimizations): CollectionCondition {
  const replicas = cluster === undefined ? [] : [...cluster.local_shards, ...cluster.remote_shards];
  const dead = replicas.filter(({ state }) => state === 'Dead').length;
  const unready = replicas.filter(({ state }) => state !== 'Active' && state !== 'Listener' && state !== 'Dead').length;
  if (info.status === 'red') return { tone: 'bad', sentence: errorOf(info) ?? 'Some of its points cannot be reached.' };
  if (errorOf(info) !== null) return { tone: 'bad', sentence: `An optimizer failed: ${errorOf(info)}` };
  if (dead > 0)
    return {
      tone: 'bad',
      sentence: `${dead} of ${replicas.length} replicas ${dead === 1 ? 'is' : 'are'} Dead; the others answer meanwhile.`,
    };
  if (cluster !== undefined && cluster.shard_transfers.length > 0)
    return { tone: 'busy', sentence: `${plural(cluster.shard_transfers.length, 'shard transfer')} under way.` };
  if (unready > 0) return { tone: 'busy', sentence: `${unready} of ${replicas.length} replicas do not serve yet.` };
  const deferred = info.update_queue?.deferred_points ?? 0;
  if (deferred > 0) return { tone: 'busy', sentence: `${count(deferred)} points stay hidden until they are indexed.` };
  if (info.status === 'yellow') return { tone: 'busy', sentence: worksOf(optimizations) };
  if (info.status === 'grey')
    return { tone: 'wait', sentence: 'Optimizations are due, and begin with the next change of the collection or a restart of the node.' };
  return { tone: 'good', sentence: rests(info) };
}

function worksOf(optimizations: Optimizations | undefined): string {
  if (optimizations === undefined) return 'Optimizers are at work.';
  const { running, summary } = optimizations;
  const [first] = running;
  const queued = summary.queued_optimizations === 0 ? '' : `, ${plural(summary.queued_optimizations, 'further one')} queued`;
  if (first === undefined) return `${plural(summary.queued_optimizations, 'optimization')} queued.`;
  const points = first.segments.reduce((sum, { points_count }) => sum + points_count, 0);
  return `The ${first.optimizer} optimizer works on ${plural(first.segments.length, 'segment')} with ${count(points)} points${queued}.`;
}

function rests(info: CollectionInfo): string {
  const points = info.points_count ?? 0;
  if (points === 0) return 'It has no points yet.';
  const indexed = info.indexed_vectors_count ?? 0;
  if (indexed === 0) return 'Small enough to be searched without an index: all answers are exact.';
  return 'All that is to be indexed is indexed.';
}

function errorOf({ optimizer_status }: CollectionInfo): string | null {
  return typeof optimizer_status === 'string' ? null : optimizer_status.error;
}

function plural(number: number, word: string): string {
  return `${count(number)} ${word}${number === 1 ? '' : 's'}`;
}

/** Cycles of optimizations as spans of time. */

import type { Optimization, OptimizationProgress } from './api-types.js';
import { seconds } from './format.js';

export interface Span {
  readonly title: string;
  readonly detail: string;
  readonly beginMs: number;
  readonly endMs: number;
  readonly outcome: 'done' | 'optimizing' | 'cancelled' | 'error';
}

/** The newest first; those that have not begun are left out. nowMs: date, ends the spans that go on. */
export function spansOf(optimizations: readonly Optimization[], nowMs: number): Span[] {
  return optimizations
    .flatMap((optimization): Span[] => {
      const { progress, optimizer, segments } = optimization;
      const beginMs = Date.parse(progress?.started_at ?? '');
      if (Number.isNaN(beginMs)) return [];
      const finishedMs = Date.parse(progress?.finished_at ?? '');
      const endMs = Number.isNaN(finishedMs) ? Math.max(nowMs, beginMs) : finishedMs;
      const points = segments.reduce((sum, { points_count }) => sum + points_count, 0);
      const { outcome, reason } = outcomeOf(optimization);
      const detail = `${segments.length} segments, ${points} points, ${seconds((endMs - beginMs) / 1000)}${reason === '' ? '' : `: ${reason}`}`;
      return [{ title: optimizer, detail, beginMs, endMs, outcome }];
    })
    .sort((one, other) => other.beginMs - one.beginMs);
}

/** 0 to 1; null where the work does not say how much there is. */
export function shareDone(progress: OptimizationProgress): number | null {
  if (progress.total !== undefined && progress.total !== null && progress.total > 0) return (progress.done ?? 0) / progress.total;
  const { children = [] } = progress;
  if (children.length === 0) return null;
  const ended = children.filter(({ finished_at }) => finished_at !== undefined && finished_at !== null).length;
  const inner = children.map(shareDone).find((share, at) => share !== null && !children[at]?.finished_at) ?? 0;
  return (ended + (inner ?? 0)) / children.length;
}

function outcomeOf({ status }: Optimization): { readonly outcome: Span['outcome']; readonly reason: string } {
  if (status === undefined || typeof status === 'string') return { outcome: status === 'optimizing' ? 'optimizing' : 'done', reason: '' };
  const [[outcome, reason] = ['error', '']] = Object.entries(status);
  return { outcome: outcome === 'cancelled' ? 'cancelled' : 'error', reason: String(reason) };
}

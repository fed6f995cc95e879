/** What optimizers of a collection do, as the API shows it. Source: API reference, `GET /collections/{name}/optimizations`. */

/** `OptimizationSegmentInfo` of the API. */
export interface SegmentReport {
  readonly uuid: string;
  readonly points_count: number;
}

/** `Optimization` of the API. */
export interface OptimizationView {
  readonly uuid: string;
  readonly optimizer: string;
  readonly status: 'optimizing' | 'done' | { readonly error: string };
  readonly segments: readonly SegmentReport[];
  readonly progress: {
    readonly name: string;
    readonly started_at: string;
    readonly finished_at?: string;
    readonly duration_sec?: number;
    readonly done?: number;
    readonly total?: number;
  };
}

/** `OptimizationsResponse` of the API, with all of its parts. */
export interface OptimizationsView {
  readonly summary: {
    readonly queued_optimizations: number;
    readonly queued_segments: number;
    readonly queued_points: number;
    readonly idle_segments: number;
  };
  readonly running: readonly OptimizationView[];
  readonly queued: readonly { readonly optimizer: string; readonly segments: readonly SegmentReport[] }[];
  /** Newest first. */
  readonly completed: readonly OptimizationView[];
  readonly idle_segments: readonly SegmentReport[];
}

/** The optimizations of several nodes as those of one. */
export function joinedOptimizations(views: readonly OptimizationsView[]): OptimizationsView {
  const sum = (of: (summary: OptimizationsView['summary']) => number) => views.reduce((total, { summary }) => total + of(summary), 0);
  const newestFirst = (one: OptimizationView, other: OptimizationView) =>
    (other.progress.finished_at ?? '') > (one.progress.finished_at ?? '') ? 1 : -1;
  return {
    summary: {
      queued_optimizations: sum(({ queued_optimizations }) => queued_optimizations),
      queued_segments: sum(({ queued_segments }) => queued_segments),
      queued_points: sum(({ queued_points }) => queued_points),
      idle_segments: sum(({ idle_segments }) => idle_segments),
    },
    running: views.flatMap(({ running }) => running),
    queued: views.flatMap(({ queued }) => queued),
    completed: views.flatMap(({ completed }) => completed).sort(newestFirst),
    idle_segments: views.flatMap(({ idle_segments }) => idle_segments),
  };
}

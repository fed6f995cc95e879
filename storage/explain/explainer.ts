/**
 * Notes how a read is carried out in this thread, while it is. A thread works on one read at a time, synchronously, so there is one explainer for
 * each; where nobody asked for an explanation, code on the way looks at a variable once for a segment or a stage, never for a row.
 *
 * - **Explain-E1** Time goes on one line: each mark gives all time since the last one to a stage of the request or of a segment, so stages never
 *   overlap, and together they are the whole. What explaining itself takes is given to none.
 * - **Explain-E2** An explained read takes the plan that it would take otherwise.
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type {
  EstimatedMatches,
  ExplainedFilter,
  ExplainedPortion,
  ExplainedSearch,
  ExplainedSegment,
  ExplainedShard,
  ExplainedStage,
} from '../../protocols/model/explanation.js';
import type { Filter } from '../../protocols/model/filter.js';
import { type HardwareUsage, noUsage } from '../../protocols/model/usage.js';
import { planSentence } from '../../query/explain/sentences.js';
import type { SegmentFacts, SegmentPlan } from '../../query/plan.js';
import { measured, spend, takeReads } from '../disk/meter.js';
import type { SeenSegment } from './seen-segment.js';

let current: Explainer | null = null;

/** Of the read under way, if it is to be explained. */
export function explaining(): Explainer | null {
  return current;
}

/** Where a read is carried out. */
export interface ExplainPlace {
  readonly collection: string;
  readonly thread: string;
  readonly peer: PeerId | null;
}

/** Of work that is not explained. */
export const NOWHERE: ExplainPlace = { collection: '', thread: '', peer: null };

/** A shard as a read sees it. */
export interface SeenShard {
  readonly shardId: ShardId;
  readonly segments: readonly SeenSegment[];
}

/** A filter that rows of a segment were looked up for. */
export interface SeenFilter {
  readonly view: SeenSegment;
  readonly filter: Filter;
}

export class Explainer {
  /** For advice. */
  readonly filters: SeenFilter[] = [];
  private readonly stages = new StageTimes();
  private readonly searches = new Map<SeenSegment, SearchNote[]>();
  private level = '';
  private levels = 0;
  private lastMs: number;
  /** Microseconds of all stages together. */
  wholeUs = 0;
  private readonly usage = noUsage();
  private seenBytes = 0;

  /** startedMs: when the work began, by `performance.now()`. */
  constructor(
    readonly place: ExplainPlace,
    startedMs = performance.now(),
  ) {
    this.lastMs = startedMs;
  }

  /** Runs the work. What it costs is added to what is measured around it, as without an explainer. */
  run<T>(work: () => T): T {
    const outer = current;
    current = this;
    try {
      return measured(this.usage, work);
    } finally {
      current = outer;
      for (const name of Object.keys(this.usage) as (keyof HardwareUsage)[]) spend(name, this.usage[name]);
    }
  }

  /** The work that follows is for another level of a query. what: it, in words. */
  begin(what: string): void {
    this.level = what;
    this.levels++;
  }

  /** Time since the last mark was for a stage outside of segments. bytes: that it read or wrote; what it read of points by default. */
  mark(stage: string, bytes = this.takeBytes()): void {
    this.stages.add(stage, this.elapsed(), bytes);
  }

  /** Time since the last mark was spent on explaining. */
  skip(): void {
    const us = this.elapsed();
    this.wholeUs -= us;
  }

  /** What is known of the segment in this level. */
  of(view: SeenSegment): SearchNote {
    const known = this.searches.get(view) ?? [];
    this.searches.set(view, known);
    const last = known.at(-1);
    if (last !== undefined && last.levelAt === this.levels) return last;
    view.reader.takeWork();
    takeReads();
    const note = new SearchNote(this, view, this.level, this.levels);
    known.push(note);
    return note;
  }

  /** Segments have given these rows. */
  gave(rows: readonly { readonly view: SeenSegment }[]): void {
    for (const { view } of rows) this.of(view).gave(1);
  }

  /** Microseconds since the last mark. */
  elapsed(): number {
    const now = performance.now();
    const us = (now - this.lastMs) * 1000;
    this.lastMs = now;
    this.wholeUs += us;
    return us;
  }

  /** Bytes since the last call that came from payloads, indexes and vectors on disk, or were compared outside of kernels. */
  takeBytes(): number {
    const { cpu, payload_index_io_read, payload_io_read, vector_io_read } = this.usage;
    const all = cpu + payload_index_io_read + payload_io_read + vector_io_read;
    const bytes = all - this.seenBytes;
    this.seenBytes = all;
    return bytes;
  }

  /** What was done here. snapshots: of the asked shards; segments of other collections are left out, and their time is in `lookup`. */
  told(snapshots: readonly SeenShard[]): Omit<ExplainedPortion, 'advice'> {
    const { peer, thread } = this.place;
    const shards = snapshots.map((snapshot) => this.shard(snapshot.shardId, snapshot.segments));
    const known = new Set(snapshots.flatMap(({ segments }) => segments));
    for (const [view, notes] of this.searches) {
      if (!known.has(view)) for (const note of notes) this.stages.add('lookup', note.us, 0);
    }
    return { thread, stages: this.stages.list(), shards: shards.map((shard) => ({ ...shard, peer_id: peer, thread })) };
  }

  private shard(shardId: ShardId, views: readonly SeenSegment[]): Omit<ExplainedShard, 'peer_id' | 'thread'> {
    const segments = views.map((view) => this.segment(view));
    return { shard_id: shardId, round: 0, time_us: rounded(segments.reduce((sum, { time_us }) => sum + time_us, 0)), segments };
  }

  private segment(view: SeenSegment): ExplainedSegment {
    const notes = this.searches.get(view) ?? [];
    const { id, kind } = view.handle;
    const searches = notes.map((note) => note.told());
    const us = notes.reduce((sum, note) => sum + note.us, 0);
    return { segment_id: id, kind, rows: view.rows, time_us: rounded(us), searches };
  }
}

/** What one level of a query did in one segment. */
export class SearchNote {
  plan = 'none';
  reason = '';
  vector: string | null = null;
  ef: number | null = null;
  hops: number | null = null;
  fellBack = false;
  scoredOn: 'codes' | 'originals' | null = null;
  rowsScored = 0;
  rowsRescored = 0;
  found = 0;
  matches: number | null = null;
  estimated: EstimatedMatches | null = null;
  filter: ExplainedFilter | null = null;
  private bytes = 0;
  private reads = 0;
  private readonly stages = new StageTimes();

  constructor(
    private readonly explainer: Explainer,
    private readonly view: SeenSegment,
    private readonly level: string,
    readonly levelAt: number,
  ) {}

  get us(): number {
    return this.stages.us;
  }

  /** Time since the last mark was for a stage of this. */
  mark(stage: string): void {
    const bytes = this.explainer.takeBytes();
    this.bytes += bytes;
    this.reads += takeReads();
    this.stages.add(stage, this.explainer.elapsed(), bytes);
  }

  /** Time since the last mark was spent on explaining. */
  skip(): void {
    this.explainer.skip();
  }

  /** The way that is taken, where no plan was made. */
  way(plan: string, reason: string): void {
    this.plan = plan;
    this.reason = reason;
  }

  planned(vector: string, facts: SegmentFacts, plan: SegmentPlan): void {
    this.vector = vector;
    this.matches = facts.admitted ?? facts.live;
    this.way(plan.kind === 'tokenLists' ? 'token_lists' : plan.kind, planSentence(plan, facts));
    if (plan.kind === 'none') return;
    this.ef = plan.kind === 'walk' ? plan.ef : null;
    this.scoredOn = plan.useCodes ? 'codes' : 'originals';
  }

  /** How a sparse vector is searched for: costs in postings. */
  sparse(vector: string, indexCost: number, rowsCost: number, rows: number): void {
    const byIndex = indexCost < rowsCost;
    const costs = `Adding up the postings of the query's indices is estimated at ${indexCost} steps, scoring ${rows} rows one by one at ${rowsCost}`;
    this.vector = vector;
    this.matches = rows;
    this.scoredOn = 'originals';
    if (!byIndex) this.rowsScored += rows;
    this.way(byIndex ? 'sparse_index' : 'sparse_rows', `${costs}.`);
    this.mark('plan');
  }

  /** Kernels have scored rows of so many bytes for a stage. */
  scored(stage: string, rowBytes: number, isAgain = false): void {
    const { hops, rows } = this.view.reader.takeWork();
    if (isAgain) this.rowsRescored += rows;
    else this.rowsScored += rows;
    if (hops > 0) this.hops = (this.hops ?? 0) + hops;
    this.bytes += rows * rowBytes;
    this.mark(stage);
  }

  /** Rows were compared with a vector, whose kernels count otherwise. */
  compared(rows: number, isAgain = false): void {
    this.view.reader.takeWork();
    if (isAgain) this.rowsRescored += rows;
    else this.rowsScored += rows;
    this.mark(isAgain ? 'rescore' : 'score');
  }

  /** Rows were compared with a vector, without a plan. */
  comparedWith(vector: string, rows: number): void {
    const layout = this.view.reader.vector(vector)?.layout;
    if (this.plan === 'none') this.way('pairs', 'Points that were found are compared with one of them.');
    const isAgain = this.plan === 'walk' && !this.fellBack;
    this.vector = vector;
    if (!isAgain) this.scoredOn = 'originals';
    if (layout?.kind === 'dense') this.bytes += rows * (layout.decoded && layout.codes !== null ? layout.codes.stride : layout.stride);
    this.compared(rows, isAgain);
  }

  /** Too few were found, so that another way is taken. rows: of what kind these are. */
  fallBack(rows = 'rows'): void {
    this.fellBack = true;
    this.reason += ` Too few ${rows} were found so, and all that pass were scored after it.`;
  }

  /** The segment has given so many rows. */
  gave(count: number): void {
    this.found += count;
  }

  /** As `gave`, at the end of a stage. */
  answered(stage: string, rows: number): void {
    this.gave(rows);
    this.mark(stage);
  }

  told(): ExplainedSearch {
    return {
      level: this.level,
      plan: this.plan,
      reason: this.reason,
      time_us: rounded(this.us),
      stages: this.stages.list(),
      matches_estimated: this.estimated,
      matches: this.matches,
      vector: this.vector,
      ef: this.ef,
      hops: this.hops,
      fell_back: this.fellBack,
      scored_on: this.scoredOn,
      rows_scored: this.rowsScored,
      rows_rescored: this.rowsRescored,
      bytes_read: Math.round(this.bytes),
      reads: this.reads,
      found: this.found,
      filter: this.filter,
    };
  }
}

/** Times by stage, in the order in which the stages began. */
export class StageTimes {
  us = 0;
  private readonly stages = new Map<string, { us: number; bytes: number }>();

  add(stage: string, us: number, bytes: number): void {
    this.us += us;
    const known = this.stages.get(stage);
    if (known === undefined) this.stages.set(stage, { us, bytes });
    else {
      known.us += us;
      known.bytes += bytes;
    }
  }

  list(): ExplainedStage[] {
    return [...this.stages].map(([stage, { us, bytes }]) => ({
      stage,
      time_us: rounded(us),
      ...(bytes > 0 ? { bytes: Math.round(bytes) } : {}),
    }));
  }
}

/** To a tenth of a microsecond. */
export function rounded(us: number): number {
  return Math.round(us * 10) / 10;
}

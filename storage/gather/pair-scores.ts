/** Similarities between points of several shards. */

import { TroupeError } from '../../protocols/errors.js';
import type { MultiVector, VectorValue } from '../../protocols/model/vector.js';
import { shownScore } from '../../query/shown-score.js';
import { maxSimilarity } from '../../vectors/max-similarity.js';
import type { TermSums } from '../threads/portion.js';
import { spaceFacts } from '../walk/space.js';
import type { GatherContext } from './context.js';
import { type GatheredHit, PointTable, pointsOf, shardIdsOf } from './hits.js';
import { sumTerms, valuesOfPoints } from './inputs.js';

/** Scores asked for at once: values × points. */
const SCORES_MAX = 1 << 20;
/** Answers to so many questions are kept, where they are not what is wanted next. */
const KEPT_QUESTIONS_MAX = 4;

/** The scores that points of several shards have by one another. */
export class PairScores {
  /** Null: not needed any more. */
  private readonly rows = new Map<number, Float32Array | null>();
  private kept = 0;
  /** Where each point stands in `points`. */
  private readonly positions = new PointTable<number>();

  private constructor(
    private readonly context: GatherContext,
    private readonly using: string,
    /** Those that have the vector. */
    readonly points: readonly GatheredHit[],
    private readonly values: readonly VectorValue[],
    private readonly terms: TermSums | null,
  ) {
    points.forEach(({ shard, id }, at) => {
      this.positions.set(shard, id, at);
    });
  }

  static async of(context: GatherContext, using: string, points: readonly GatheredHit[]): Promise<PairScores> {
    if (points.length === 0) return new PairScores(context, using, [], [], null);
    const values = new PointTable<VectorValue>();
    for (const { shard, id, value } of await valuesOfPoints(context, using, pointsOf(points))) values.set(shard, id, value);
    const present = points.filter((point) => values.get(point) !== undefined);
    const found = present.map((point) => values.get(point) as VectorValue);
    return new PairScores(context, using, present, found, await sumTerms(context, using, found));
  }

  /** Once for each position, as the API shows them: of each point by the value of the one at a position. Float32Array [points], NaN for one that is gone. */
  async to(position: number): Promise<Float32Array> {
    if (!this.rows.has(position)) await this.ask(this.unknownFrom(position, this.roomForRows()));
    const row = this.rows.get(position) as Float32Array;
    this.rows.set(position, null);
    this.kept--;
    return row;
  }

  /**
   * The score of the point at a position by the value of each point, as the API shows it: Float32Array [points]. Multivectors only. It is computed
   * here: the values are, and to ask for it they would all have to be sent.
   * Errors: `timeout`.
   */
  from(position: number): Float32Array {
    const { distance } = spaceFacts(this.context.source.place.params, this.using);
    const stored = multiOf(this.values[position]);
    return Float32Array.from(this.values, (value) => {
      this.context.portions.checkTime();
      return shownScore(distance, maxSimilarity(distance, multiOf(value).values, stored.values, stored.dim));
    });
  }

  private roomForRows(): number {
    const atOnce = Math.floor(SCORES_MAX / this.points.length);
    return Math.max(1, Math.min(atOnce, KEPT_QUESTIONS_MAX * atOnce - this.kept));
  }

  /** The position and others whose scores come along: those behind it first, as they are wanted next. */
  private unknownFrom(position: number, count: number): number[] {
    const wanted: number[] = [];
    const { length } = this.points;
    for (let step = 0; step < length && wanted.length < count; step++) {
      const at = (position + step) % length;
      if (!this.rows.has(at)) wanted.push(at);
    }
    return wanted;
  }

  private async ask(wanted: readonly number[]): Promise<void> {
    const { context, using, terms } = this;
    const points = pointsOf(this.points);
    const values = wanted.map((at) => this.values[at] as VectorValue);
    const answers = await context.portions.ask(context.source, { kind: 'scores', using, values, points, terms }, shardIdsOf(points));
    for (const at of wanted) this.rows.set(at, new Float32Array(this.points.length).fill(Number.NaN));
    this.kept += wanted.length;
    for (const { shards: of, ids, scores } of answers) {
      const places = ids.map((id, at) => this.positions.get({ shard: of[at] as number, id }) as number);
      wanted.forEach((from, value) => {
        const row = this.rows.get(from) as Float32Array;
        places.forEach((place, at) => {
          row[place] = scores[value * ids.length + at] as number;
        });
      });
    }
  }
}

function multiOf(value: VectorValue | undefined): MultiVector {
  if (value?.kind !== 'multi') throw new TroupeError('internal', 'a multivector is compared with another kind of vector');
  return value;
}

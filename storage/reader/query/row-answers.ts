/** Answers what walks need from the rows of this thread's snapshots, at once. */

import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { PointId } from '../../../protocols/model/point-id.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { levelText } from '../../../query/explain/sentences.js';
import type { TermValue } from '../../../query/filter/lookup.js';
import type { GroupValue } from '../../../query/group.js';
import type { PointView } from '../../answers/result.js';
import { explaining } from '../../explain/explainer.js';
import { limitsOf } from '../../threads/deadline.js';
import {
  type Answers,
  type Needs,
  type ResolvedInput,
  type ResolvedInputs,
  type Scope,
  type ShownPoint,
  type Walk,
  walkNow,
} from '../../walk/walk.js';
import { candidatesOf } from '../nearest/candidates.js';
import { HIT_BYTES, type Hit } from '../nearest/hit.js';
import { scoreRows, scoringWork } from '../nearest/search.js';
import type { ReadContext } from '../read-context.js';
import { chosenSnapshots } from '../snapshot/chosen-shards.js';
import { partsOf, type RowPart } from '../snapshot/row-parts.js';
import type { ReplicaSnapshot, SegmentView } from '../snapshot/snapshot-view.js';
import { type VectorSpace, vectorSpace } from '../snapshot/vector-space.js';
import { valueCounts } from './facet.js';
import { valuesOfRow } from './group-values.js';
import { givenInput, inputBytes, isSameCollection, pointInput } from './inputs.js';
import { levelHits } from './level.js';
import { PointViews } from './point-view.js';
import { countPoints, retrievePoints } from './points.js';

/** Payloads read between two checks of the deadline. */
const CHECK_HITS = 1024;

/** A level of a query that finds nothing. */
const LEVEL_NS = 2000;
const LEVEL_BYTES = 256;
/** A pair of a matrix is sorted and printed; as it is held, with one more copy as text. */
const PAIR_NS = 200;
const PAIR_BYTES = 32;

/** Runs a walk on the rows of some snapshots. Errors: those of the walk; `timeout`. */
export function walkRows<Result>(context: ReadContext, start: (scope: Scope<Hit>) => Walk<Hit, Result>): Result {
  return walkNow(firstOf(context).config.params, new RowAnswers(context), start);
}

class RowAnswers implements Answers<Hit> {
  /** Of the list whose points are compared with one another. */
  private compared: { readonly hits: readonly Hit[]; readonly space: VectorSpace; readonly parts: readonly RowPart[] } | null = null;

  constructor(private readonly context: ReadContext) {}

  walks({ branches }: Needs<Hit>['walks']): unknown[] {
    const { snapshots, keyed } = this.context;
    const { params } = firstOf(this.context).config;
    return branches.map(({ shardKey, walk }) => {
      if (shardKey === undefined) return walkNow(params, this, walk);
      return walkNow(params, new RowAnswers({ ...this.context, snapshots: chosenSnapshots(snapshots, keyed, shardKey) }), walk);
    });
  }

  inputs({ place }: Needs<Hit>['inputs']): ResolvedInputs {
    let points: Map<PointId, ResolvedInput> | null = null;
    return {
      of: (input) => {
        if (input.kind !== 'point') return givenInput(input);
        points ??= new Map();
        const known = points.get(input.id);
        if (known !== undefined) return known;
        const limits = limitsOf(this.context.snapshots);
        limits?.check();
        const found = pointInput(this.context, input.id, place);
        limits?.hold(inputBytes(found.value));
        points.set(input.id, found);
        return found;
      },
    };
  }

  isOwnLookup({ lookupFrom: { collection, shardKey } }: Needs<Hit>['isOwnLookup']): boolean {
    return isSameCollection(this.context.lookup(collection, shardKey), this.context.snapshots);
  }

  level({ node, query, lists }: Needs<Hit>['level']): readonly Hit[] {
    const { snapshots, random } = this.context;
    // A request may have hundreds of thousands of queries that take no time at all.
    const limits = limitsOf(snapshots);
    limits?.check();
    limits?.claim({ kind: 'planned', ns: LEVEL_NS });
    const explainer = explaining();
    explainer?.mark('other');
    const candidates = lists.length === 0 ? null : candidatesOf(lists);
    explainer?.begin(levelText(query.kind, node.using, node.limit + node.offset, lists.length === 0 ? null : candidatesIn(lists)));
    const hits = levelHits(snapshots, { node, query, lists, candidates }, random);
    explainer?.mark('merge');
    limits?.hold(LEVEL_BYTES + hits.length * HIT_BYTES);
    return hits;
  }

  shown({ hits, extras }: Needs<Hit>['shown']): readonly ShownPoint[] {
    const { config, vectors } = firstOf(this.context);
    const views = new PointViews(config, vectors, extras.withPayload, extras.withVector);
    const limits = hits[0]?.view.reader.deadline;
    limits?.claim(views.work(hits.length));
    limits?.hold(views.bytes(hits.length));
    const shown = hits.map(({ view, row }, at) => {
      if (at % CHECK_HITS === 0) limits?.check();
      return views.parts(view, row);
    });
    explaining()?.mark('show');
    return shown;
  }

  groupValues({ hits, groupBy }: Needs<Hit>['groupValues']): readonly (readonly GroupValue[])[] {
    hits[0]?.view.reader.deadline.claim({ kind: 'payloads', count: hits.length });
    const values = hits.map(({ view, row }, at) => {
      if (at % CHECK_HITS === 0) view.reader.deadline.check();
      return valuesOfRow(view, row, groupBy);
    });
    explaining()?.mark('group values');
    return values;
  }

  field({ key }: Needs<Hit>['field']): FieldSchema | undefined {
    return firstOf(this.context).segments[0]?.fields.get(key);
  }

  lookup({ collection }: Needs<Hit>['lookup']): undefined {
    this.context.lookup(collection);
  }

  points({ collection, query }: Needs<Hit>['points']): readonly PointView[] {
    const points = retrievePoints(collection === null ? this.context.snapshots : this.context.lookup(collection), query);
    explaining()?.mark('points');
    return points;
  }

  comparable({ hits, kept }: Needs<Hit>['comparable']): readonly Hit[] {
    const pairs = hits.length * Math.min(kept, hits.length - 1);
    const limits = limitsOf(this.context.snapshots);
    limits?.claim({ kind: 'planned', ns: pairs * PAIR_NS });
    limits?.hold(pairs * PAIR_BYTES);
    return hits;
  }

  scores({ hits, using, at, query }: Needs<Hit>['scores']): Float32Array {
    if (this.compared?.hits !== hits) this.compared = { hits, space: vectorSpace(this.context.snapshots, using), parts: partsOf(hits) };
    const { space, parts } = this.compared;
    const { view, row } = hits[at] as Hit;
    view.reader.deadline.check();
    const value = view.vectorOf(using, row) as VectorValue;
    explaining()?.begin(`similarities of ${hits.length} points to one of them`);
    view.reader.deadline.claim(scoringWork(view, space, value, hits.length, 1));
    if (query === 'each') return scoresByEach(view, row, space, hits);
    const all = new Float32Array(hits.length);
    for (const part of parts) {
      const scores = scoreRows(part.view, space, value, part.rows);
      part.positions.forEach((position, i) => {
        all[position] = scores[i] as number;
      });
    }
    return all;
  }

  count({ filter }: Needs<Hit>['count']): number {
    explaining()?.begin('how many points pass');
    return countPoints(this.context.snapshots, filter);
  }

  facet(need: Needs<Hit>['facet']): ReadonlyMap<TermValue, number> {
    explaining()?.begin(`values of \`${need.key}\``);
    return valueCounts(this.context.snapshots, need);
  }
}

/** The scores of one row by the vector of each hit; NaN for hits without one. */
function scoresByEach(view: SegmentView, row: number, space: VectorSpace, hits: readonly Hit[]): Float32Array {
  const rows = Uint32Array.of(row);
  return Float32Array.from(hits, (hit) => {
    view.reader.deadline.check();
    const value = hit.view.vectorOf(space.name, hit.row);
    return value === undefined ? Number.NaN : (scoreRows(view, space, value, rows)[0] as number);
  });
}

/** Points, each as often as a prefetch found it. */
function candidatesIn(lists: Needs<Hit>['level']['lists']): number {
  return lists.reduce((sum, { hits }) => sum + hits.length, 0);
}

function firstOf({ snapshots }: ReadContext): ReplicaSnapshot {
  return snapshots[0] as ReplicaSnapshot;
}

/** Rows of a segment that a walk of its graph finds for a query with several examples. */

import type { Filter } from '../../../protocols/model/filter.js';
import type { SearchParams } from '../../../protocols/model/query.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { type ExampleForm, type ExampleSearch, exampleFacts, exampleSearch, planExamples } from '../../../query/example-plan.js';
import { planNs, type SegmentPlan } from '../../../query/plan.js';
import type { Admission, Graph, Matrix, Ranked } from '../../../vectors/kernel-api.js';
import { explaining } from '../../explain/explainer.js';
import { seePlan } from '../../explain/seen-plans.js';
import { metricOf } from '../../segment/layout.js';
import { elementOf } from '../../segment/plans.js';
import { factsOf, valueFacts } from '../nearest/search.js';
import { withinTime } from '../nearest/within-time.js';
import { admittedBits, countedAdmission } from '../snapshot/admitted.js';
import type { ReplicaSnapshot, SegmentView } from '../snapshot/snapshot-view.js';
import { valueWalkFor } from '../snapshot/value-graphs.js';
import { comparedValues, type DenseSpace, type VectorSpace } from '../snapshot/vector-space.js';

/** A query with examples as graphs are searched for it. */
export interface ExampleTask {
  readonly space: DenseSpace;
  readonly filter: Filter | null;
  readonly params: SearchParams;
  /** Results wanted: limit + offset. */
  readonly k: number;
  readonly count: number;
  readonly search: ExampleSearch | null;
}

/** Null: no graph is searched, as vectors of this kind have none. values: fit the space. */
export function exampleTask(
  space: VectorSpace,
  node: Pick<ExampleTask, 'filter' | 'params'> & { readonly limit: number; readonly offset: number },
  form: ExampleForm,
  values: readonly VectorValue[],
): ExampleTask | null {
  // Cosine of bytes is that of rows of any length, which kernels do not score.
  if (space.kind !== 'dense' || (space.distance === 'Cosine' && elementOf(space.params.datatype) === 'u8')) return null;
  const { filter, limit, offset, params } = node;
  if (limit + offset === 0 || values.length === 0) return null;
  // An example that is given many times is the same value.
  const compared = new Map<VectorValue, Float32Array>();
  const examples = values.map((value) => {
    const known =
      compared.get(value) ?? comparedValues(space, value.kind === 'sparse' ? value : { ...value, values: value.values.slice() });
    compared.set(value, known);
    return known;
  });
  const search = exampleSearch(form, examples, metricOf(space.distance));
  return { space, filter, params, k: limit + offset, count: values.length, search };
}

/** Rows that may be the best, ascending; null: all that pass are to be scored. Errors: `timeout`. */
export function likelyExampleRows(view: SegmentView, snapshot: ReplicaSnapshot, task: ExampleTask): Uint32Array | null {
  const { count, filter, k, params, search, space } = task;
  const vector = view.reader.vector(space.name);
  if (vector === undefined || view.rows === 0) return null;
  const { deadline, kernels } = view.reader;
  deadline.check();
  const bits = admittedBits(view, vector, filter);
  const { admission, admitted } = countedAdmission(view, bits);
  const values = valueWalkFor(view, vector, filter);
  const asked = { params: space.params, search: { params } };
  const known = factsOf(view, vector, snapshot, asked, Math.min(k, admitted ?? view.rows), admitted, valueFacts(values));
  const facts = exampleFacts(known, search);
  const matrix = facts.codes === null ? vector.original : vector.codes;
  const plan = planExamples(facts, { count, search, countMax: matrix === null ? 0 : kernels.examplesMax(matrix) });
  seePlan(plan);
  const note = explaining()?.of(view);
  note?.planned(space.name, facts, plan);
  if (plan.kind !== 'walk' || search === null || matrix === null) {
    note?.way('examples', `Every row that may be an answer is compared with each example. ${note.reason}`);
    return null;
  }
  note?.mark('plan');
  deadline.claim({ kind: 'planned', ns: planNs(facts, plan) });
  const graph = plan.graph === 'value' && values !== null ? values.graph : vector.graph;
  if (graph === null) return null;
  const found = withinTime(() => walked(view, matrix, { admission, graph }, search, plan));
  note?.scored('walk', matrix.stride);
  if (found.count >= facts.k || found.count >= kernels.countAdmitted(view.rows, admission)) return found.rows.slice().sort();
  note?.fallBack();
  return null;
}

function walked(
  { reader: { kernels, slot }, rows }: SegmentView,
  matrix: Matrix,
  { admission, graph }: { readonly admission: Admission; readonly graph: Graph },
  search: ExampleSearch,
  { ef, narrow }: Extract<SegmentPlan, { kind: 'walk' }>,
): Ranked {
  if (search.kind === 'ranks') return kernels.walkByExamples(slot, matrix, graph, admission, search.walk, { ef, rows, narrow });
  kernels.setQuery(slot, matrix, search.target);
  return kernels.walk(slot, matrix, graph, admission, { ef, k: ef, rows, narrow });
}

/** Graphs over the rows of single payload values (`payload_m`): room for them, and their building. */

import { graphPlan, writeSubgraph } from '../../vectors/built-graph.js';
import type { Adjacency, SubgraphSetting, SubgraphsLayout, ValueGraph, VectorLayout, VectorPlan } from '../segment/layout.js';
import { buildSettings, type GraphReport, type SegmentDraft, typeLadder, withRecall } from './build-vectors.js';
import type { BuildControl } from './control.js';
import { type GraphElement, isWorthNext, type TypeFidelity } from './element.js';
import { type BuildTask, type GraphTask, linkRows } from './link-rows.js';
import { upperWordsMax } from './reserved-plans.js';
import type { PlacedValue } from './value-rows.js';

const NONE = 0xffff_ffff;

/** Room for the graphs of values. */
export function reservedSubgraphs(setting: SubgraphSetting, values: readonly PlacedValue[]): NonNullable<VectorPlan['subgraphs']> {
  const { m } = setting;
  const upperWords: number[] = [];
  for (const { layer, rows } of values) upperWords[layer] = (upperWords[layer] ?? 0) + upperWordsMax(rows.length, m);
  return { setting, layers: upperWords.map((words) => ({ m, m0: 2 * m, upperWords: words })), values: [] };
}

/**
 * Builds the graph of each value and checks its recall. `vector.subgraphs` holds the room; the layout that comes back holds the
 * graphs. Where there is no graph over all rows, it has no codes where walks are better off with the originals.
 * present: rows that have the vector.
 */
export async function linkSubgraphs(
  draft: SegmentDraft,
  vector: VectorLayout,
  present: Uint32Array,
  values: readonly PlacedValue[],
  task: GraphTask,
  control: BuildControl,
): Promise<{ vector: VectorLayout; report: GraphReport }> {
  const { subgraphs } = vector;
  if (subgraphs === null) throw new Error(`no room reserved for sub-graphs of '${vector.name}'`);
  const started = control.now();
  const work = new SubgraphWork(draft, vector, subgraphs, task, control);
  if (values.length > 0) await work.run(values, present);
  const report = { name: vector.name, element: work.element, recall: work.recall, milliseconds: Math.round(control.now() - started) };
  return { vector: work.finished(), report: { ...report, values: work.built.length } };
}

class SubgraphWork {
  readonly built: ValueGraph[] = [];
  recall = 1;
  element: GraphElement = 'f32';
  /** Words of the upper levels taken in each layer. */
  private readonly taken: number[];

  constructor(
    private readonly draft: SegmentDraft,
    private vector: VectorLayout,
    private readonly subgraphs: SubgraphsLayout,
    private readonly task: GraphTask,
    private readonly control: BuildControl,
  ) {
    this.taken = subgraphs.layers.map(() => 0);
    for (const { upperIndex } of subgraphs.layers) new Uint32Array(draft.memory.buffer, upperIndex, draft.rows).fill(NONE);
  }

  async run(values: readonly PlacedValue[], present: Uint32Array): Promise<void> {
    const { draft, vector, task } = this;
    const settings = buildSettings(draft, vector, task.distance, present);
    let ladder = typeLadder(draft, vector, present, settings);
    const presence = new Uint32Array(draft.memory.buffer, vector.presence, Math.ceil(draft.rows / 32));
    for (const value of values) {
      const rows = value.rows.filter((row) => (((presence[row >>> 5] as number) >>> (row & 31)) & 1) === 1);
      // Few rows are scanned.
      if (rows.length < this.subgraphs.setting.rowsMin) continue;
      await this.link(value, rows, { ...task, ...settings }, ladder);
      // A type that was not good enough for one value is not tried for the next.
      ladder = ladder.slice(ladder.findIndex(({ element }) => element === this.element));
    }
  }

  private async link(
    value: PlacedValue,
    rows: Uint32Array,
    task: Omit<BuildTask, 'element'>,
    ladder: readonly TypeFidelity[],
  ): Promise<void> {
    const { draft, control } = this;
    const layer = this.subgraphs.layers[value.layer] as Adjacency;
    const from = this.taken[value.layer] as number;
    let recall = 0;
    let entry = { entryRow: NONE, maxLevel: 0 };
    for (const [n, type] of ladder.entries()) {
      const { element } = type;
      await control.checkpoint();
      const graph = await linkRows(draft, this.vector, rows, { ...task, element, byInsertion: true }, control);
      const { m, m0, upperWords, ...begin } = graphPlan(graph);
      if (m !== layer.m || m0 !== layer.m0 || from + upperWords > layer.upperWords)
        throw new Error(`graph of ${value.field} = ${value.value} does not fit: ${JSON.stringify(graphPlan(graph))}`);
      this.taken[value.layer] = writeSubgraph(graph, draft.memory, layer, draft.rows, from);
      this.element = element;
      entry = begin;
      recall = this.check({ ...layer, ...entry, efConstruct: task.efConstruct }, rows);
      if (!isWorthNext(recall, task.metric, type, ladder[n + 1])) break;
    }
    this.built.push({ field: value.field, value: value.value, rows: rows.length, layer: value.layer, ...entry });
    this.recall = Math.min(this.recall, recall);
  }

  /** Recall of a value's graph; takes the codes away where it is low and nothing else needs them. */
  private check(graph: NonNullable<VectorLayout['graph']>, rows: Uint32Array): number {
    const { draft, vector, task } = this;
    const subject = { ...draft, vector: { ...vector, graph }, present: rows, partial: true };
    const checked = withRecall(subject, task.efConstruct);
    if (vector.graph === null && checked.vector.codes === null) this.vector = { ...vector, codes: null };
    return checked.recall;
  }

  finished(): VectorLayout {
    const layers = this.subgraphs.layers.map((layer, n) => ({ ...layer, upperWords: this.taken[n] as number }));
    return { ...this.vector, subgraphs: { ...this.subgraphs, layers, values: this.built } };
  }
}

/** The graph of some rows of a new segment: of all pairs in small groups (`vectors/graph-maker.ts`) where codes of 8 bits allow it, else by usearch. */

import { TroupeError } from '../../protocols/errors.js';
import type { Distance } from '../../protocols/model/collection.js';
import type { BuiltGraph } from '../../vectors/built-graph.js';
import { GraphMaker, upperM, upperRows } from '../../vectors/graph-maker.js';
import { canMake, type MakerOptions } from '../../vectors/maker-places.js';
import type { MakerCrew } from '../../vectors/maker-thread.js';
import { residentOffset, type VectorLayout } from '../segment/layout.js';
import { sharedMemory } from '../segment/shared-memory.js';
import type { SegmentDraft } from './build-vectors.js';
import { type BuildControl, letGoOf } from './control.js';
import { type BuildMetric, encodeSigned, type GraphElement } from './element.js';
import { GraphBuilder } from './graph.js';
import { insertionOrder } from './insertion-order.js';
import { broughtFloats, readSignedCodes } from './matrix.js';

const SLICE_ROWS = 2048;
/** A thread that helps takes some 50 ms to begin; so few rows take one thread alone half a second. */
const CREW_ROWS_MIN = 15_000;

/** How one vector's graph is to be built. */
export interface GraphTask {
  readonly distance: Distance;
  readonly m: number;
  readonly efConstruct: number;
  readonly threads: number;
  /** Where usearch may put a file for a moment. */
  readonly file: string;
}

/** How graphs over a vector's rows are built. */
export interface BuildSettings {
  readonly metric: BuildMetric;
  /** Scale of signed 8-bit components for dot products. */
  readonly scale: number;
}

export interface BuildTask extends GraphTask, BuildSettings {
  readonly element: GraphElement;
  /** Rows are inserted one by one, also where the graph could be made of pairs. Left out: they are not. */
  readonly byInsertion?: boolean;
}

/** The graph of some rows, their numbers as keys. */
export async function linkRows(
  draft: SegmentDraft,
  vector: VectorLayout,
  rows: Uint32Array,
  task: BuildTask,
  control: BuildControl,
): Promise<BuiltGraph> {
  const order = await ordered(draft, vector, rows, task, control);
  if (!task.byInsertion && canLinkByPairs(vector, order.length, task)) {
    const graph = await makeGraph(draft, vector, order, task, control);
    if (graph !== null) return graph;
  }
  const places = order.map((_, place) => place);
  const graph = await insertRows(draft, vector, order, places, `building ${task.element} graph`, task, control);
  return { ...graph, keys: graph.keys.map((place) => order[place] as number) };
}

/** Gives the memory of a graph back that was written where it stays. */
export function letGoGraph({ memory }: BuiltGraph, { pages }: BuildControl): void {
  if (memory !== undefined) letGoOf(pages, memory, 0, memory.buffer.byteLength);
}

/** Whether the graph of so many rows can, and should, be made of pairs. */
export function canLinkByPairs(vector: VectorLayout, rows: number, task: BuildTask): boolean {
  return codesFor(vector, task) !== null && canMake({ ...task, rows, dim: vector.dim });
}

/** The graph of pairs; null: there is no memory for it, which is more than insertions take. */
async function makeGraph(
  draft: SegmentDraft,
  vector: VectorLayout,
  order: Uint32Array,
  task: BuildTask,
  control: BuildControl,
): Promise<BuiltGraph | null> {
  const { dim } = vector;
  const from = codesFor(vector, task) as CodesPlace;
  const crew = task.threads > 1 && order.length >= CREW_ROWS_MIN ? ((await control.crew?.()) ?? null) : null;
  const options = { ...task, rows: order.length, dim, threads: 1 + (crew?.size ?? 0) };
  const maker = makerOf(options, crew);
  if (maker === null) return null;
  const above = upperRows(options);
  const upper =
    above.length === 0
      ? null
      : await insertRows(draft, vector, order, above, 'linking upper levels', { ...task, m: upperM(task.m) }, control);
  const bytes = new Uint8Array(draft.memory.buffer);
  for (const [slot, row] of order.entries()) {
    const start = from.offset + row * from.stride;
    maker.codes.set(bytes.subarray(start, start + dim), slot * maker.stride);
  }
  const pause = (done: number) => {
    control.progress(`building ${task.element} graph`, done, order.length);
    return control.checkpoint();
  };
  return maker.make(order, upper, pause, (memory, offset, bytes) => letGoOf(control.pages, memory, offset, bytes));
}

function makerOf(options: MakerOptions, crew: MakerCrew | null): GraphMaker | null {
  try {
    return new GraphMaker(options, sharedMemory, crew);
  } catch (error) {
    // Without addresses, or without memory.
    if (error instanceof TroupeError || error instanceof RangeError) return null;
    throw error;
  }
}

/** The graph by usearch of the rows at some places of an order. Its keys are these places. */
async function insertRows(
  draft: SegmentDraft,
  vector: VectorLayout,
  order: Uint32Array,
  places: Uint32Array,
  stage: string,
  task: BuildTask,
  control: BuildControl,
): Promise<BuiltGraph> {
  const builder = new GraphBuilder({ ...task, dim: vector.dim });
  for (let at = 0; at < places.length; at += SLICE_ROWS) {
    await control.checkpoint();
    control.progress(stage, at, places.length);
    const slice = places.subarray(at, at + SLICE_ROWS);
    builder.add(
      slice,
      sliceOf(
        draft,
        vector,
        slice.map((place) => order[place] as number),
        task,
      ),
    );
  }
  await control.checkpoint();
  return builder.finish(task.file);
}

/** Rows in the order to insert them. Originals would be read here and there for it, so only those with codes have one of their own. */
async function ordered(
  draft: SegmentDraft,
  vector: VectorLayout,
  rows: Uint32Array,
  task: BuildTask,
  control: BuildControl,
): Promise<Uint32Array> {
  const codes = codesFor(vector, task);
  if (codes === null) return rows;
  const codesOf = (some: Uint32Array) => readSignedCodes(draft.memory, codes.offset, codes.stride, vector.dim, some);
  return insertionOrder(rows, vector.dim, codesOf, (done) => {
    control.progress('ordering rows', done, rows.length);
    return control.checkpoint();
  });
}

/** Rows in the type usearch takes them in: 8-bit codes as they are, everything else from the originals. */
function sliceOf(draft: SegmentDraft, vector: VectorLayout, rows: Uint32Array, task: BuildTask): Int8Array | Float32Array {
  const codes = codesFor(vector, task);
  if (codes !== null) return readSignedCodes(draft.memory, codes.offset, codes.stride, vector.dim, rows);
  const values = broughtFloats(draft, vector, rows);
  if (task.element !== 'i8') return values;
  const signed = new Int8Array(values.length);
  encodeSigned(values, task.scale, signed);
  return signed;
}

interface CodesPlace {
  readonly offset: number;
  readonly stride: number;
}

/** Where the 8-bit codes are that a graph is made of; null where it is made of the originals. */
function codesFor(vector: VectorLayout, { element, metric }: BuildTask): CodesPlace | null {
  if (element !== 'i8' || metric !== 'l2sq') return null;
  return vector.element === 'u8' ? { offset: residentOffset(vector), stride: vector.stride } : vector.codes;
}

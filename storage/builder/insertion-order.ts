/**
 * The order in which rows are put into a graph: near ones one after the other. What an insertion reads (vectors and links of what is near) is then in the
 * processor's caches from the insertion before; in an order at random nearly each row that it scores comes from memory. Measured with usearch, 8 bits,
 * 500,000 × 128, two threads: 60 instead of 80 s of CPU, recall 0.918 instead of 0.912 at the same `ef`. Pure.
 */

import { spreadRows } from './matrix.js';
import { groupedOrder } from './reorder.js';

/** Fewer bytes stay in the caches in any order. */
const ORDERED_FROM_BYTES = 8 << 20;
/** Rows that the tree is made from. Four times as many, for four times as many leaves, took 54 µs of CPU a row instead of 25 (MNIST, 30,000 × 784), and changed no recall. */
const SAMPLE_ROWS = 2048;
/** Splits from the root to a leaf. */
const DEPTH_MAX = 8;
/** Fewer rows of the sample are not split. */
const LEAF_ROWS = 8;
const ITERATIONS = 2;
/**
 * Each so many rows, in the order given, come first: links between regions are made while there is little in each, and so that the last region
 * has a way to the first.
 */
const FIRST_EACH = 16;
const SLICE_ROWS = 2048;

interface Plane {
  readonly normal: Float32Array;
  readonly offset: number;
}

/** A plane between two halves of a region, or a leaf. Leaves are numbered from the left, so that near numbers are near each other. */
type Region = { readonly leaf: number } | (Plane & { readonly below: Region; readonly above: Region });

/**
 * The rows in the order to insert them. codesOf: [rows, dim] of some rows. pause: is awaited now and then, and hears how many rows are done.
 * bytesMin: the order of less does not matter.
 */
export async function insertionOrder(
  rows: Uint32Array,
  dim: number,
  codesOf: (rows: Uint32Array) => Int8Array,
  pause: (done: number) => Promise<void>,
  bytesMin = ORDERED_FROM_BYTES,
): Promise<Uint32Array> {
  if (rows.length === 0 || rows.length * dim < bytesMin) return rows;
  const tree = split(codesOf(spreadRows(rows, SAMPLE_ROWS)), dim);
  /** Of each place in `rows`. */
  const turnOf = new Uint32Array(rows.length);
  for (let at = 0; at < rows.length; at += SLICE_ROWS) {
    const slice = rows.subarray(at, at + SLICE_ROWS);
    const values = codesOf(slice);
    for (let i = 0; i < slice.length; i++) turnOf[at + i] = (at + i) % FIRST_EACH === 0 ? 0 : 1 + leafAt(tree, values, i * dim);
    await pause(at);
  }
  const places = Uint32Array.from({ length: rows.length }, (_, at) => at);
  return groupedOrder(places, turnOf).map((at) => rows[at] as number);
}

/** Halves the sample by its two means, again and again. */
function split(sample: Int8Array, dim: number): Region {
  let leaves = 0;
  const regionOf = (members: Uint32Array, depth: number): Region => {
    const plane = depth === DEPTH_MAX || members.length < 2 * LEAF_ROWS ? null : planeBetween(sample, members, dim);
    if (plane === null) return { leaf: leaves++ };
    const isAbove = (member: number) => sideOf(plane, sample, member * dim) > 0;
    const [below, above] = [members.filter((member) => !isAbove(member)), members.filter(isAbove)];
    if (below.length === 0 || above.length === 0) return { leaf: leaves++ };
    return { ...plane, below: regionOf(below, depth + 1), above: regionOf(above, depth + 1) };
  };
  return regionOf(
    Uint32Array.from({ length: sample.length / dim }, (_, member) => member),
    0,
  );
}

/** Between the means of two halves: those nearer to the first member, and to the one farthest from it, to begin with. Null where all are alike. */
function planeBetween(sample: Int8Array, members: Uint32Array, dim: number): Plane | null {
  const first = Float32Array.from(vectorAt(sample, members[0] as number, dim));
  let farthest = 0;
  let other: Float32Array | null = null;
  for (const member of members) {
    const vector = vectorAt(sample, member, dim);
    let distance = 0;
    for (let i = 0; i < dim; i++) distance += ((vector[i] as number) - (first[i] as number)) ** 2;
    if (distance <= farthest) continue;
    farthest = distance;
    other = Float32Array.from(vector);
  }
  if (other === null) return null;
  let plane = planeOf(first, other);
  for (let iteration = 0; iteration < ITERATIONS; iteration++) {
    const [below = null, above = null] = meansOf(sample, members, plane, dim);
    if (below === null || above === null) break;
    plane = planeOf(below, above);
  }
  return plane;
}

function vectorAt(values: Int8Array, member: number, dim: number): Int8Array {
  return values.subarray(member * dim, (member + 1) * dim);
}

/** Points that are as far from both are on the plane, those nearer to `above` are above it. */
function planeOf(below: Float32Array, above: Float32Array): Plane {
  const normal = above.map((value, i) => value - (below[i] as number));
  let offset = 0;
  for (let i = 0; i < normal.length; i++) offset += ((above[i] as number) ** 2 - (below[i] as number) ** 2) / 2;
  return { normal, offset };
}

function meansOf(sample: Int8Array, members: Uint32Array, plane: Plane, dim: number): (Float32Array | null)[] {
  const sums = [new Float64Array(dim), new Float64Array(dim)];
  const counts = [0, 0];
  for (const member of members) {
    const side = sideOf(plane, sample, member * dim) > 0 ? 1 : 0;
    const vector = vectorAt(sample, member, dim);
    const sum = sums[side] as Float64Array;
    for (let i = 0; i < dim; i++) sum[i] = (sum[i] as number) + (vector[i] as number);
    counts[side] = (counts[side] as number) + 1;
  }
  return sums.map((sum, side) => {
    const count = counts[side] as number;
    return count === 0 ? null : Float32Array.from(sum, (value) => value / count);
  });
}

function leafAt(root: Region, values: Int8Array, at: number): number {
  let region = root;
  while (!('leaf' in region)) region = sideOf(region, values, at) > 0 ? region.above : region.below;
  return region.leaf;
}

/** Above 0: above the plane. */
function sideOf({ normal, offset }: Plane, values: Int8Array, at: number): number {
  let product = -offset;
  for (let i = 0; i < normal.length; i++) product += (normal[i] as number) * (values[at + i] as number);
  return product;
}

/**
 * Cells of the earth as integers, so that an index of sorted numbers finds the points of an area: the bits of longitude
 * and latitude by turns (Z-order), most significant first, hence a square of cells is one range of numbers.
 */

import type { GeoArea, GeoPoint, Range } from '../../protocols/model/filter.js';
import { areaBoxes } from './area.js';
import type { GeoBox } from './ring.js';

/** Bits of each axis: cells of 0.6 m at the equator, and numbers that a double holds exactly. */
const AXIS_BITS = 26;
const AXIS_CELLS = 2 ** AXIS_BITS;
/** Ranges that an area is cut into, about; more of them touch fewer points outside. */
const RANGES_MAX = 64;

interface Square {
  /** Cells along an edge: 2^26 and its halves. */
  readonly size: number;
  readonly x: number;
  readonly y: number;
}

/** Cells from <= cell <= to, per axis. */
interface CellBox {
  readonly west: number;
  readonly east: number;
  readonly south: number;
  readonly north: number;
}

/** The cell of a point with valid degrees: 0..2^52-1. */
export function cellOf(point: GeoPoint): number {
  return interleave(axisCell(point.lon, 360), axisCell(point.lat, 180));
}

/** Ranges of cells, ascending and apart, that hold every point of the area, and points around it. */
export function areaCells(area: GeoArea): Range[] {
  const boxes = areaBoxes(area).map(cellBox);
  if (boxes.length === 0) return [];
  const done: Square[] = [];
  let open: Square[] = [{ size: AXIS_CELLS, x: 0, y: 0 }];
  while (open.length > 0) {
    if (done.length + open.length * 2 > RANGES_MAX) return rangesOf([...done, ...open]);
    const next: Square[] = [];
    for (const square of open) {
      const cover = coverOf(square, boxes);
      if (cover === 'all' || (cover === 'some' && square.size === 1)) done.push(square);
      else if (cover === 'some') next.push(...quarters(square).filter((quarter) => coverOf(quarter, boxes) !== 'none'));
    }
    open = next;
  }
  return rangesOf(done);
}

function coverOf(square: Square, boxes: readonly CellBox[]): 'all' | 'some' | 'none' {
  const east = square.x + square.size - 1;
  const north = square.y + square.size - 1;
  let touches = false;
  for (const box of boxes) {
    if (square.x >= box.west && east <= box.east && square.y >= box.south && north <= box.north) return 'all';
    touches ||= square.x <= box.east && east >= box.west && square.y <= box.north && north >= box.south;
  }
  return touches ? 'some' : 'none';
}

function quarters({ size, x, y }: Square): Square[] {
  const half = size / 2;
  return [
    { size: half, x, y },
    { size: half, x, y: y + half },
    { size: half, x: x + half, y },
    { size: half, x: x + half, y: y + half },
  ];
}

function rangesOf(squares: readonly Square[]): Range[] {
  const runs = squares.map(({ size, x, y }) => ({ from: interleave(x, y), cells: size * size })).sort((a, b) => a.from - b.from);
  const ranges: { gte: number; lt: number }[] = [];
  for (const { from, cells } of runs) {
    const last = ranges.at(-1);
    if (last !== undefined && last.lt === from) last.lt = from + cells;
    else ranges.push({ gte: from, lt: from + cells });
  }
  return ranges;
}

function cellBox(box: GeoBox): CellBox {
  return {
    west: axisCell(box.west, 360),
    east: axisCell(box.east, 360),
    south: axisCell(box.south, 180),
    north: axisCell(box.north, 180),
  };
}

/** Grows with the degrees, so that a box of degrees lies within the box of its corners' cells. */
function axisCell(degrees: number, width: number): number {
  return Math.min(AXIS_CELLS - 1, Math.max(0, Math.floor(((degrees + width / 2) / width) * AXIS_CELLS)));
}

function interleave(x: number, y: number): number {
  const half = AXIS_BITS / 2;
  const low = (1 << half) - 1;
  // 26 bits fit a 32-bit word; two of them need a double.
  return word(x >>> half, y >>> half) * 2 ** AXIS_BITS + word(x & low, y & low);
}

/** The bits of two 13-bit numbers by turns. */
function word(x: number, y: number): number {
  return (spread(x) << 1) | spread(y);
}

function spread(bits: number): number {
  let wide = (bits | (bits << 8)) & 0x00ff_00ff;
  wide = (wide | (wide << 4)) & 0x0f0f_0f0f;
  wide = (wide | (wide << 2)) & 0x3333_3333;
  return (wide | (wide << 1)) & 0x5555_5555;
}

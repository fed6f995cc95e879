/**
 * Rings of polygons, unrolled to the plane of longitude and latitude. Edges are straight there.
 *
 * An edge whose ends lie more than 180 and less than 360 degrees of longitude apart goes the short way, across the
 * antimeridian: 177, -178 is 5 degrees wide. The long way needs a point in between. An edge of exactly 360 degrees goes
 * once round, so that -180..180 is the whole width. A ring that goes round a pole contains the pole that it is nearer to.
 */

import type { GeoPoint } from '../../protocols/model/filter.js';

/** Degrees; west <= east, and both may lie beyond 180. */
export interface GeoBox {
  readonly west: number;
  readonly east: number;
  readonly south: number;
  readonly north: number;
}

export interface GeoRing {
  /** Corners one after the other, f64 [corners, 2] (lon, lat); the last one is the first again. Longitudes go on beyond ±180. */
  readonly corners: Float64Array;
  readonly box: GeoBox;
  /** Latitude of the pole that the ring goes round; null for none. */
  readonly pole: number | null;
}

export type Side = 'inside' | 'edge' | 'outside';

/** A closed ring (first point = last point, four or more) ready for tests. */
export function geoRing(points: readonly GeoPoint[]): GeoRing {
  const corners = new Float64Array(points.length * 2);
  let turn = 0;
  let before = snapped((points[0] as GeoPoint).lon);
  points.forEach((point, at) => {
    const lon = snapped(point.lon);
    turn += turnAfter(lon - before);
    before = lon;
    corners.set([lon + turn, point.lat], at * 2);
  });
  const box = boxOf(corners);
  if (turn === 0) return { corners, box, pole: null };
  const pole = points.reduce((sum, point) => sum + point.lat, 0) < 0 ? -90 : 90;
  const cap = { west: -180, east: 180, south: pole < 0 ? -90 : box.south, north: pole < 0 ? box.north : 90 };
  return { corners, box: cap, pole };
}

/** Where a point lies, longitude in -180..180; it counts in each of its turns round the earth. */
export function sideOf(ring: GeoRing, longitude: number, lat: number): Side {
  const lon = snapped(longitude);
  const { box } = ring;
  if (ring.pole !== null) return polarSide(ring.corners, ring.pole, lon, lat);
  if (!(lat >= box.south && lat <= box.north)) return 'outside';
  let side: Side = 'outside';
  for (let turn = lon + 360 * Math.ceil((box.west - lon) / 360); turn <= box.east; turn += 360) {
    const here = planarSide(ring.corners, turn, lat);
    if (here === 'inside') return 'inside';
    if (here === 'edge') side = 'edge';
  }
  return side;
}

/** By the parity of the edges east of the point. */
function planarSide(corners: Float64Array, lon: number, lat: number): Side {
  let inside = false;
  for (let at = 0; at + 3 < corners.length; at += 2) {
    const fromLon = corners[at] as number;
    const fromLat = corners[at + 1] as number;
    const toLon = corners[at + 2] as number;
    const toLat = corners[at + 3] as number;
    // Positive where the point lies left of the edge.
    const left = (toLon - fromLon) * (lat - fromLat) - (toLat - fromLat) * (lon - fromLon);
    if (left === 0 && between(lon, fromLon, toLon) && between(lat, fromLat, toLat)) return 'edge';
    if (fromLat > lat !== toLat > lat && left > 0 === toLat > fromLat) inside = !inside;
  }
  return inside ? 'inside' : 'outside';
}

/** By the parity of the edges between the point and the other pole, which is outside. */
function polarSide(corners: Float64Array, pole: number, lon: number, lat: number): Side {
  let inside = false;
  for (let at = 0; at + 3 < corners.length; at += 2) {
    const fromLon = corners[at] as number;
    const fromLat = corners[at + 1] as number;
    const toLon = corners[at + 2] as number;
    const toLat = corners[at + 3] as number;
    const west = Math.min(fromLon, toLon);
    for (let turn = lon + 360 * Math.ceil((west - lon) / 360); turn <= Math.max(fromLon, toLon); turn += 360) {
      const left = (toLon - fromLon) * (lat - fromLat) - (toLat - fromLat) * (turn - fromLon);
      if (left === 0 && between(lat, fromLat, toLat)) return 'edge';
      const isNorthOfEdge = left > 0 === toLon > fromLon;
      if (fromLon > turn !== toLon > turn && isNorthOfEdge === pole > 0) inside = !inside;
    }
  }
  return inside ? 'inside' : 'outside';
}

function between(value: number, a: number, b: number): boolean {
  return a <= b ? value >= a && value <= b : value >= b && value <= a;
}

/** Degrees to add to all longitudes behind an edge of so many, so that the edge goes the short way. */
function turnAfter(degrees: number): number {
  if (degrees > 180 && degrees < 360) return -360;
  return degrees < -180 && degrees > -360 ? 360 : 0;
}

/** A longitude to 2^-43 degrees, 1e-8 m: so that whole turns can be added to it without rounding. */
function snapped(lon: number): number {
  return lon + 1024 - 1024;
}

function boxOf(corners: Float64Array): GeoBox {
  const box = { west: Infinity, east: -Infinity, south: Infinity, north: -Infinity };
  for (let at = 0; at < corners.length; at += 2) {
    box.west = Math.min(box.west, corners[at] as number);
    box.east = Math.max(box.east, corners[at] as number);
    box.south = Math.min(box.south, corners[at + 1] as number);
    box.north = Math.max(box.north, corners[at + 1] as number);
  }
  return box;
}

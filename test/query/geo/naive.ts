/** Areas once more, by other formulas: angles between vectors, and rays to the west. */

import type { GeoArea, GeoPoint } from '../../../protocols/model/filter.js';

const RADIUS = 6_371_008.8;

export function naiveInside(point: GeoPoint, area: GeoArea): boolean {
  if (area.kind === 'circle') return naiveDistance(point, area.center) < area.radius;
  if (area.kind === 'polygon') {
    return side(area.exterior, point) === 'inside' && area.interiors.every((ring) => side(ring, point) === 'outside');
  }
  const { topLeft, bottomRight } = area;
  const [isEast, isWest] = [point.lon > topLeft.lon, point.lon < bottomRight.lon];
  const within = topLeft.lon > bottomRight.lon ? isEast || isWest : isEast && isWest;
  return within && point.lat < topLeft.lat && point.lat > bottomRight.lat;
}

/** The angle between the two directions, times the radius. */
export function naiveDistance(a: GeoPoint, b: GeoPoint): number {
  const [ax, ay, az] = direction(a);
  const [bx, by, bz] = direction(b);
  const cross = Math.hypot(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx);
  return RADIUS * Math.atan2(cross, ax * bx + ay * by + az * bz);
}

function direction({ lon, lat }: GeoPoint): [number, number, number] {
  const [l, p] = [(lon * Math.PI) / 180, (lat * Math.PI) / 180];
  return [Math.cos(p) * Math.cos(l), Math.cos(p) * Math.sin(l), Math.sin(p)];
}

function side(ring: readonly GeoPoint[], point: GeoPoint): 'inside' | 'edge' | 'outside' {
  const flat = unroll(ring);
  if (Math.abs((flat.at(-1) as GeoPoint).lon - (flat[0] as GeoPoint).lon) > 180) return polarSide(flat, point);
  const sides = [-1080, -720, -360, 0, 360, 720, 1080].map((turn) => flatSide(flat, point.lon + turn, point.lat));
  if (sides.includes('inside')) return 'inside';
  return sides.includes('edge') ? 'edge' : 'outside';
}

function unroll(ring: readonly GeoPoint[]): GeoPoint[] {
  let turn = 0;
  return ring.map((point, at) => {
    const step = at === 0 ? 0 : point.lon - (ring[at - 1] as GeoPoint).lon;
    if (Math.abs(step) > 180 && Math.abs(step) < 360) turn -= Math.sign(step) * 360;
    return { lon: point.lon + turn, lat: point.lat };
  });
}

/** Latitudes at which the ring meets the point's meridian, between the point and the pole that is outside. */
function polarSide(ring: readonly GeoPoint[], point: GeoPoint): 'inside' | 'edge' | 'outside' {
  const south = ring.slice(0, -1).reduce((sum, { lat }) => sum + lat, (ring.at(-1) as GeoPoint).lat) < 0;
  let crossings = 0;
  for (let at = 1; at < ring.length; at++) {
    const [a, b] = [ring[at - 1] as GeoPoint, ring[at] as GeoPoint];
    for (const lon of [-1080, -720, -360, 0, 360, 720, 1080].map((turn) => point.lon + turn)) {
      const isBetween = lon >= Math.min(a.lon, b.lon) && lon <= Math.max(a.lon, b.lon);
      const latBetween = point.lat >= Math.min(a.lat, b.lat) && point.lat <= Math.max(a.lat, b.lat);
      if (isBetween && latBetween && (lon - a.lon) * (b.lat - a.lat) === (point.lat - a.lat) * (b.lon - a.lon)) return 'edge';
      if (a.lon <= lon === b.lon <= lon) continue;
      const lat = a.lat + ((lon - a.lon) / (b.lon - a.lon)) * (b.lat - a.lat);
      if (south ? lat > point.lat : lat < point.lat) crossings++;
    }
  }
  return crossings % 2 === 1 ? 'inside' : 'outside';
}

function flatSide(ring: readonly GeoPoint[], lon: number, lat: number): 'inside' | 'edge' | 'outside' {
  let crossings = 0;
  for (let at = 1; at < ring.length; at++) {
    const [a, b] = [ring[at - 1] as GeoPoint, ring[at] as GeoPoint];
    const isBetween =
      lon >= Math.min(a.lon, b.lon) && lon <= Math.max(a.lon, b.lon) && lat >= Math.min(a.lat, b.lat) && lat <= Math.max(a.lat, b.lat);
    if (isBetween && (lon - a.lon) * (b.lat - a.lat) === (lat - a.lat) * (b.lon - a.lon)) return 'edge';
    if (a.lat <= lat === b.lat <= lat) continue;
    if (a.lon + ((lat - a.lat) / (b.lat - a.lat)) * (b.lon - a.lon) < lon) crossings++;
  }
  return crossings % 2 === 1 ? 'inside' : 'outside';
}

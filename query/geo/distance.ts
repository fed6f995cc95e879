/** Distances on the earth, taken as a sphere. */

import type { GeoPoint } from '../../protocols/model/filter.js';

/** Mean radius of the earth in metres (IUGG), as the contract's distances have it. Source: scenario query-formula-decay. */
export const EARTH_RADIUS_METRES = 6_371_008.8;

export const RADIANS_PER_DEGREE = Math.PI / 180;

/** Metres between two points along the surface, by the haversine formula: 0 for the same point, half the circumference at most. */
export function distanceMetres(a: GeoPoint, b: GeoPoint): number {
  const halfLat = Math.sin(((b.lat - a.lat) * RADIANS_PER_DEGREE) / 2);
  const halfLon = Math.sin(((b.lon - a.lon) * RADIANS_PER_DEGREE) / 2);
  const share = halfLat * halfLat + Math.cos(a.lat * RADIANS_PER_DEGREE) * Math.cos(b.lat * RADIANS_PER_DEGREE) * halfLon * halfLon;
  // Rounding may leave the share a hair beyond 1 for points on opposite sides.
  return 2 * EARTH_RADIUS_METRES * Math.asin(Math.min(1, Math.sqrt(share)));
}

/** Random areas of the earth: boxes, circles and rectangles as polygons, with plain tests of what lies in them. */

import type { RandomNumbers } from '../../../ops/random.js';
import { chance, one, placeOf } from './points.js';

interface Place {
  readonly lon: number;
  readonly lat: number;
}

const EARTH_RADIUS = 6_371_008.8;

/** A condition's area and what lies in it. Places have one decimal; corners have two, so that none lies on a border. */
export function areaOf(random: RandomNumbers): { wire: object; holds: (place: Place) => boolean } {
  const kind = one(random, ['box', 'circle', 'polygon'] as const);
  const { lon, lat } = placeOf(random);
  if (kind === 'circle') {
    const radius = 1 + random.integer(8_000_000);
    return {
      wire: { geo_radius: { center: { lon, lat }, radius } },
      holds: (place) => metres({ lon, lat }, place) < radius,
    };
  }
  const west = lon + 0.05;
  const south = Math.min(lat, 60) + 0.05;
  const north = south + 1 + random.integer(25);
  if (kind === 'box') {
    // May go across the antimeridian.
    const width = 10 + random.integer(120);
    const east = west + width > 180 ? west + width - 360 : west + width;
    const between = (at: number) => (west < east ? at > west && at < east : at > west || at < east);
    return {
      wire: { geo_bounding_box: { top_left: { lon: west, lat: north }, bottom_right: { lon: east, lat: south } } },
      holds: (place) => between(place.lon) && place.lat > south && place.lat < north,
    };
  }
  const from = Math.min(west, 80.05);
  const to = from + 80;
  const ring = (inset: number) => {
    const corners = [
      [from + inset, south + inset],
      [to - inset, south + inset],
      [to - inset, north - inset],
      [from + inset, north - inset],
      [from + inset, south + inset],
    ];
    return { points: corners.map(([x, y]) => ({ lon: x, lat: y })) };
  };
  const inside = (inset: number) => (place: Place) =>
    place.lon > from + inset && place.lon < to - inset && place.lat > south + inset && place.lat < north - inset;
  const holed = north - south > 4 && chance(random, 2);
  return {
    wire: { geo_polygon: { exterior: ring(0), ...(holed ? { interiors: [ring(1.5)] } : {}) } },
    holds: (place) => inside(0)(place) && !(holed && inside(1.5)(place)),
  };
}

/** Haversine. */
export function metres(a: Place, b: Place): number {
  const radians = (degrees: number) => (degrees * Math.PI) / 180;
  const half = (from: number, to: number) => Math.sin(radians(to - from) / 2) ** 2;
  const h = half(a.lat, b.lat) + Math.cos(radians(a.lat)) * Math.cos(radians(b.lat)) * half(a.lon, b.lon);
  return 2 * EARTH_RADIUS * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** Which points lie in an area. Its border is outside. Source: scenario filter-geo (plain-box-edge, plain-radius-zero). */

import type { GeoArea, GeoPoint } from '../../protocols/model/filter.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { distanceMetres, EARTH_RADIUS_METRES, RADIANS_PER_DEGREE } from './distance.js';
import { type GeoBox, type GeoRing, geoRing, sideOf } from './ring.js';

/** Whether a point lies in the area. */
export type AreaTest = (lon: number, lat: number) => boolean;

/** The test of an area. */
export function areaTest(area: GeoArea): AreaTest {
  switch (area.kind) {
    case 'box': {
      const { topLeft, bottomRight } = area;
      const isWithin: AreaTest =
        topLeft.lon > bottomRight.lon
          ? (lon) => lon > topLeft.lon || lon < bottomRight.lon
          : (lon) => lon > topLeft.lon && lon < bottomRight.lon;
      return (lon, lat) => lat < topLeft.lat && lat > bottomRight.lat && isWithin(lon, lat);
    }
    case 'circle':
      return (lon, lat) => distanceMetres(area.center, { lon, lat }) < area.radius;
    case 'polygon': {
      const exterior = geoRing(area.exterior);
      const interiors = area.interiors.map(geoRing);
      // A stored longitude may be any number; only one of a place has turns.
      return (lon, lat) => Math.abs(lon) <= 180 && sideOf(exterior, lon, lat) === 'inside' && isNoHole(interiors, lon, lat);
    }
    default:
      return unreachable(area);
  }
}

function isNoHole(interiors: readonly GeoRing[], lon: number, lat: number): boolean {
  return interiors.every((ring) => sideOf(ring, lon, lat) === 'outside');
}

/** Boxes that together hold every point of the area with valid degrees, and more. Longitudes within -180..180. */
export function areaBoxes(area: GeoArea): GeoBox[] {
  switch (area.kind) {
    case 'box': {
      const { topLeft, bottomRight } = area;
      const east = topLeft.lon > bottomRight.lon ? bottomRight.lon + 360 : bottomRight.lon;
      return folded({ west: topLeft.lon, east, south: bottomRight.lat, north: topLeft.lat });
    }
    case 'circle':
      return circleBoxes(area.center, area.radius);
    case 'polygon':
      return folded(geoRing(area.exterior).box);
    default:
      return unreachable(area);
  }
}

/** The point that a payload value holds: numbers `lon` and `lat`, whatever stands beside them. */
export function geoPointOf(value: JsonValue): GeoPoint | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const lon = numberAt(value, 'lon');
  const lat = numberAt(value, 'lat');
  return lon === undefined || lat === undefined ? undefined : { lon, lat };
}

/** Whether the degrees are those of a place: longitude -180..180, latitude -90..90. */
export function isPlace(point: GeoPoint): boolean {
  return point.lon >= -180 && point.lon <= 180 && point.lat >= -90 && point.lat <= 90;
}

function numberAt(value: { readonly [key: string]: JsonValue }, key: string): number | undefined {
  const number = Object.hasOwn(value, key) ? value[key] : undefined;
  if (typeof number === 'bigint') return Number(number);
  return typeof number === 'number' ? number : undefined;
}

/** Source: the widest meridian that a circle touches, asin(sin r / cos lat), as any small circle on a sphere has it. */
function circleBoxes(center: GeoPoint, radius: number): GeoBox[] {
  if (!(radius > 0)) return [];
  // A metre and a billionth more, for what haversine and this lose to rounding.
  const angle = (radius * (1 + 1e-9) + 1) / EARTH_RADIUS_METRES;
  const latReach = angle / RADIANS_PER_DEGREE;
  const [south, north] = [center.lat - latReach, center.lat + latReach];
  const sine = Math.sin(Math.min(angle, Math.PI / 2)) / Math.cos(center.lat * RADIANS_PER_DEGREE);
  if (south <= -90 || north >= 90 || !(sine < 1)) return folded({ west: -180, east: 180, south, north });
  const lonReach = Math.asin(sine) / RADIANS_PER_DEGREE + 1e-9;
  return folded({ west: center.lon - lonReach, east: center.lon + lonReach, south, north });
}

/** The same places with longitudes within -180..180 and latitudes within -90..90. */
function folded(box: GeoBox): GeoBox[] {
  const south = Math.max(box.south, -90);
  const north = Math.min(box.north, 90);
  if (!(south <= north) || !(box.west <= box.east)) return [];
  if (box.east - box.west >= 360) return [{ west: -180, east: 180, south, north }];
  const boxes: GeoBox[] = [];
  for (const turn of [-720, -360, 0, 360, 720]) {
    const west = Math.max(box.west + turn, -180);
    const east = Math.min(box.east + turn, 180);
    if (west <= east) boxes.push({ west, east, south, north });
  }
  return boxes;
}

function unreachable(value: never): never {
  throw new Error(`unknown kind: ${JSON.stringify(value)}`);
}

/** Decodes places and areas. Source: schemas GeoPoint, GeoBoundingBox, GeoRadius and GeoPolygon of the API, scenario filter-geo. */

import { TroupeError } from '../errors.js';
import type { GeoArea, GeoPoint } from '../model/filter.js';
import type { JsonValue } from '../model/payload.js';
import { isObject, type JsonObject, wrongType } from './fields.js';

/** First point = last point, around at least three corners. */
const RING_POINTS_MIN = 4;

/** The areas of a field condition, one for each geo field that is given. Errors: `malformedBody`. */
export function geoAreasOf(condition: JsonObject, path: string): GeoArea[] {
  const areas: GeoArea[] = [];
  const read = (name: string, decode: (object: JsonObject, path: string) => GeoArea): void => {
    const value = Object.hasOwn(condition, name) ? condition[name] : undefined;
    if (value === undefined || value === null) return;
    if (!isObject(value)) throw wrongType(`${path}.${name}`, value, 'an object');
    areas.push(decode(value, `${path}.${name}`));
  };
  read('geo_bounding_box', (box, at) => ({
    kind: 'box',
    topLeft: decodeGeoPoint(member(box, 'top_left'), `${at}.top_left`),
    bottomRight: decodeGeoPoint(member(box, 'bottom_right'), `${at}.bottom_right`),
  }));
  read('geo_radius', (circle, at) => ({
    kind: 'circle',
    center: decodeGeoPoint(member(circle, 'center'), `${at}.center`),
    radius: numberOf(member(circle, 'radius'), `${at}.radius`),
  }));
  read('geo_polygon', (polygon, at) => ({
    kind: 'polygon',
    exterior: ringOf(member(polygon, 'exterior'), `${at}.exterior`),
    interiors: interiorsOf(member(polygon, 'interiors'), `${at}.interiors`),
  }));
  return areas;
}

/** A place. Errors: `malformedBody`, also for degrees that no place has. */
export function decodeGeoPoint(value: JsonValue | undefined, path: string): GeoPoint {
  if (!isObject(value)) throw wrongType(path, value, 'an object with `lat` and `lon`');
  const point = { lon: numberOf(member(value, 'lon'), `${path}.lon`), lat: numberOf(member(value, 'lat'), `${path}.lat`) };
  if (Math.abs(point.lat) <= 90 && Math.abs(point.lon) <= 180) return point;
  throw new TroupeError(
    'malformedBody',
    `\`${path}\`: expected \`lat\` = ${point.lat} within [-90;90] and \`lon\` = ${point.lon} within [-180;180]`,
  );
}

function interiorsOf(value: JsonValue | undefined, path: string): GeoPoint[][] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw wrongType(path, value, 'a list of rings');
  return value.map((ring, index) => ringOf(ring, `${path}[${index}]`));
}

function ringOf(value: JsonValue | undefined, path: string): GeoPoint[] {
  const points = isObject(value) ? member(value, 'points') : undefined;
  if (!Array.isArray(points)) throw wrongType(path, value, 'an object with a list of `points`');
  const ring = points.map((point, index) => decodeGeoPoint(point, `${path}.points[${index}]`));
  if (ring.length < RING_POINTS_MIN) {
    throw new TroupeError(
      'malformedBody',
      `\`${path}\`: polygon invalid, the size must be at least ${RING_POINTS_MIN}, got ${ring.length}`,
    );
  }
  const [first, last] = [ring[0] as GeoPoint, ring.at(-1) as GeoPoint];
  if (first.lat === last.lat && first.lon === last.lon) return ring;
  throw new TroupeError(
    'malformedBody',
    `\`${path}\`: polygon invalid, the first and the last points should be the same to form a closed line`,
  );
}

function numberOf(value: JsonValue | undefined, path: string): number {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number') return value;
  throw wrongType(path, value, 'a number');
}

function member(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

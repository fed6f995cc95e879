import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { GeoArea, GeoPoint } from '../../../protocols/model/filter.js';
import { areaTest } from '../../../query/geo/area.js';
import { areaCells, cellOf } from '../../../query/geo/cells.js';
import { distanceMetres } from '../../../query/geo/distance.js';
import { seeded } from '../property.js';
import { naiveDistance, naiveInside } from './naive.js';

const degrees = (bound: number) =>
  fc.oneof(
    fc.double({ min: -bound, max: bound, noNaN: true }),
    fc.constantFrom(-bound, bound, 0, -0),
    fc.integer({ min: -bound, max: bound }),
  );
const place = fc.record({ lon: degrees(180), lat: degrees(90) });
const ring = fc.array(place, { minLength: 3, maxLength: 6 }).map((points) => [...points, points[0] as GeoPoint]);
const area: fc.Arbitrary<GeoArea> = fc.oneof(
  fc.record({ kind: fc.constant('box' as const), topLeft: place, bottomRight: place }),
  fc.record({
    kind: fc.constant('circle' as const),
    center: place,
    radius: fc.oneof(fc.double({ min: 0, max: 3e7, noNaN: true }), fc.constantFrom(1, 1e3, 1e5)),
  }),
  fc.record({ kind: fc.constant('polygon' as const), exterior: ring, interiors: fc.array(ring, { maxLength: 2 }) }),
);

function at(lon: number, lat: number): GeoPoint {
  return { lon, lat };
}

function ringOf(...corners: [number, number][]): GeoPoint[] {
  const points = corners.map(([lon, lat]) => at(lon, lat));
  return [...points, points[0] as GeoPoint];
}

test('distances are those of the angle between two directions', () => {
  fc.assert(
    fc.property(place, place, (a, b) => {
      assert.ok(Math.abs(distanceMetres(a, b) - naiveDistance(a, b)) < 0.5);
      assert.equal(distanceMetres(a, a), 0);
    }),
    seeded(1000),
  );
  assert.equal(Math.fround(distanceMetres(at(13.405, 52.52), at(2.3522, 48.8566))), Math.fround(877464.56));
  assert.ok(Math.abs(distanceMetres(at(0, 0), at(180, 0)) - Math.PI * 6_371_008.8) < 1e-6);
});

test('a place within an area lies in a cell of the area, poles and the antimeridian included', () => {
  fc.assert(
    fc.property(area, place, fc.array(place, { maxLength: 20 }), (one, near, places) => {
      const isWithin = areaTest(one);
      const cells = areaCells(one);
      for (const point of [near, ...places]) {
        if (!isWithin(point.lon, point.lat)) continue;
        const cell = cellOf(point);
        assert.ok(
          cells.some(({ gte, lt }) => cell >= (gte as number) && cell < (lt as number)),
          JSON.stringify([one, point]),
        );
      }
    }),
    seeded(2000),
  );
});

test('a place near the rim of a circle is in a cell of the circle when it is within', () => {
  const rim = fc.record({
    center: place,
    radius: fc.constantFrom(0.5, 10, 1e3, 1e5, 5e6, 1.99e7),
    bearing: fc.double({ min: 0, max: 7, noNaN: true }),
  });
  fc.assert(
    fc.property(rim, ({ center, radius, bearing }) => {
      const point = destination(center, radius * 0.999_999, bearing);
      const circle: GeoArea = { kind: 'circle', center, radius };
      if (!areaTest(circle)(point.lon, point.lat)) return;
      const cell = cellOf(point);
      assert.ok(areaCells(circle).some(({ gte, lt }) => cell >= (gte as number) && cell < (lt as number)));
    }),
    seeded(3000),
  );
});

test('boxes and polygons hold the places of the naive model', () => {
  const grid = fc.record({
    lon: fc.integer({ min: -18, max: 18 }).map((n) => n * 10),
    lat: fc.integer({ min: -9, max: 9 }).map((n) => n * 10),
  });
  // Exact in binary, so that no formula rounds a place over an edge.
  const eighths = fc.record({
    lon: fc.integer({ min: -1440, max: 1440 }).map((n) => n / 8),
    lat: fc.integer({ min: -720, max: 720 }).map((n) => n / 8),
  });
  const gridRing = fc.array(grid, { minLength: 3, maxLength: 6 }).map((points) => [...points, points[0] as GeoPoint]);
  const gridArea: fc.Arbitrary<GeoArea> = fc.oneof(
    fc.record({ kind: fc.constant('box' as const), topLeft: grid, bottomRight: grid }),
    fc.record({ kind: fc.constant('polygon' as const), exterior: gridRing, interiors: fc.array(gridRing, { maxLength: 1 }) }),
  );
  fc.assert(
    fc.property(gridArea, fc.oneof(grid, eighths), (one, point) => {
      assert.equal(areaTest(one)(point.lon, point.lat), naiveInside(point, one));
    }),
    seeded(5000),
  );
});

test('a polygon across the antimeridian goes the short way, its interiors too', () => {
  const fiji: GeoArea = {
    kind: 'polygon',
    exterior: ringOf([175, -20], [-175, -20], [-175, -10], [175, -10]),
    interiors: [ringOf([179, -16], [-179, -16], [-179, -14], [179, -14])],
  };
  const isWithin = areaTest(fiji);
  for (const [lon, lat] of [
    [176, -15],
    [-176, -15],
    [180, -12],
    [-180, -12],
  ] as const)
    assert.ok(isWithin(lon, lat), `${lon}`);
  for (const [lon, lat] of [
    [0, -15],
    [174, -15],
    [-174, -15],
    [180, -15],
    [-180, -15],
    [180, -20],
  ] as const)
    assert.ok(!isWithin(lon, lat), `${lon}`);
});

test('a ring round a pole holds the pole it is nearer to, and edges of 360 degrees go once round', () => {
  const antarctic = areaTest({ kind: 'polygon', exterior: ringOf([-120, -60], [0, -60], [120, -60]), interiors: [] });
  assert.ok(
    antarctic(55, -80) && antarctic(-180, -61) && antarctic(-120, -70) && !antarctic(-120, -60) && !antarctic(0, -59) && !antarctic(0, 80),
  );
  const world = areaTest({ kind: 'polygon', exterior: ringOf([-180, -90], [180, -90], [180, 90], [-180, 90]), interiors: [] });
  assert.ok(world(0, 0) && world(179, 89) && world(-100, -45));
});

test('the border of an area is outside', () => {
  const box = areaTest({ kind: 'box', topLeft: at(0, 1), bottomRight: at(1, 0) });
  assert.ok(box(0.5, 0.5) && !box(0, 0.5) && !box(0.5, 0) && !box(1, 1));
  const square = areaTest({
    kind: 'polygon',
    exterior: ringOf([0, 0], [4, 0], [4, 4], [0, 4]),
    interiors: [ringOf([1, 1], [2, 1], [2, 2], [1, 2])],
  });
  assert.ok(square(3, 3) && !square(0, 2) && !square(4, 4) && !square(1, 1.5) && !square(1.5, 1.5));
  assert.ok(!areaTest({ kind: 'circle', center: at(3, 3), radius: 0 })(3, 3));
});

test('a stored longitude or latitude of any size is answered', () => {
  const triangle = areaTest({ kind: 'polygon', exterior: ringOf([0, 0], [4, 0], [4, 4]), interiors: [] });
  for (const number of [1e308, -1e308, 1e9, 361]) assert.equal(triangle(number, 1) || triangle(3, number), false);
});

function destination(from: GeoPoint, metres: number, bearing: number): GeoPoint {
  const angle = metres / 6_371_008.8;
  const lat = (from.lat * Math.PI) / 180;
  const sine = Math.sin(lat) * Math.cos(angle) + Math.cos(lat) * Math.sin(angle) * Math.cos(bearing);
  const turn = Math.atan2(Math.sin(bearing) * Math.sin(angle) * Math.cos(lat), Math.cos(angle) - Math.sin(lat) * sine);
  const lon = from.lon + (turn * 180) / Math.PI;
  return { lon: lon > 180 ? lon - 360 : lon < -180 ? lon + 360 : lon, lat: (Math.asin(Math.max(-1, Math.min(1, sine))) * 180) / Math.PI };
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { FieldCondition, GeoArea, GeoPoint, Match } from '../../../protocols/model/filter.js';
import { emptyBits } from '../../../query/filter/bits.js';
import { areaTest } from '../../../query/geo/area.js';
import { seeded } from '../../query/property.js';
import { Replica, specOf, temporaryFolder, upsert } from './support.js';

const TEXT: FieldSchema = { type: 'text', params: { type: 'text', tokenizer: 'prefix', min_token_len: 2 } };
const WORDS = ['quick', 'brown', 'fox', `long${'g'.repeat(500)}`, '今天'];

function rowsOf(replica: Replica, condition: FieldCondition): { quality: string; rows: number[]; max: number | undefined } {
  const [segment, rows] = [...replica.view.refresh().appendable][0] as [number, number];
  const index = replica.view.fieldIndex(segment, condition.key, rows);
  const bits = emptyBits(rows);
  const quality = index?.match(condition, bits) ?? 'none';
  const max = index?.cardinality(condition)?.max;
  replica.view.release();
  return {
    quality,
    rows: Array.from({ length: rows }, (_, row) => row).filter((row) => ((bits[row >>> 5] as number) >>> (row & 31)) & 1),
    max,
  };
}

test('places and words of appendable rows are found by their keys, with nothing beside them', async (t) => {
  const folder = temporaryFolder(t);
  let replica = await Replica.open(specOf(folder));
  const degrees = [-180, -179.99, -90, -0.5, 0, 0.001, 45, 89.9, 90, 170, 180];
  const places = degrees.flatMap((lon) => degrees.filter((lat) => Math.abs(lat) <= 90).map((lat): GeoPoint => ({ lon, lat })));
  const payloads = places.map((g, at) => ({
    g: at % 5 === 0 ? [{ ...g }, { lon: 1, lat: 1 }] : { ...g },
    t: [WORDS[at % 5] as string, `${WORDS[(at * 7) % 3]} ${WORDS[at % 2]}`],
  }));
  replica.apply(
    { kind: 'createFieldIndex', field: 'g', schema: { type: 'geo' } },
    upsert(payloads.map((payload, id) => ({ id, seed: 1, payload }))),
    { kind: 'createFieldIndex', field: 't', schema: TEXT },
  );
  const check = (): void => {
    const corner = fc.record({
      lon: fc.constantFrom(...degrees, 2),
      lat: fc.constantFrom(...degrees.filter((lat) => Math.abs(lat) <= 90), 2),
    });
    const area: fc.Arbitrary<GeoArea> = fc.oneof(
      fc.record({ kind: fc.constant('box' as const), topLeft: corner, bottomRight: corner }),
      fc.record({ kind: fc.constant('circle' as const), center: corner, radius: fc.constantFrom(1, 5000, 2e6, 3e7) }),
    );
    fc.assert(
      fc.property(area, (one) => {
        const isWithin = areaTest(one);
        const expected = payloads.flatMap(({ g }, row) => ([g].flat().some(({ lon, lat }) => isWithin(lon, lat)) ? [row] : []));
        const { quality, rows, max } = rowsOf(replica, { kind: 'geo', key: 'g', area: one });
        assert.deepEqual([quality, rows], ['exact', expected]);
        assert.ok(max === undefined || max >= rows.length);
      }),
      seeded(150),
    );
    for (const text of ['qui fo', 'brown', 'longg', '今天 fox', 'zebra fox']) {
      for (const kind of ['text', 'textAny'] as const) {
        const beginnings = text.split(' ');
        const has = (t: string[], one: string): boolean => t.some((value) => value.split(' ').some((word) => word.startsWith(one)));
        const expected = payloads.flatMap(({ t }, row) => {
          const found = beginnings.map((one) => has(t, one));
          return (kind === 'text' ? found.every(Boolean) : found.some(Boolean)) ? [row] : [];
        });
        const match: Match = { kind, text };
        assert.deepEqual(rowsOf(replica, { kind: 'match', key: 't', match }).rows, expected, `${kind} ${text}`);
      }
    }
  };
  check();
  assert.deepEqual(Object.fromEntries(replica.store.stats().fieldPoints), { g: payloads.length, t: payloads.length });
  await replica.close();
  replica = await Replica.within(t, specOf(folder));
  check();
});

test('an index created again with other parameters takes the place of the first', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const match: Match = { kind: 'text', text: 'qui' };
  replica.apply(upsert([{ id: 1, seed: 1, payload: { t: 'quick' } }]), { kind: 'createFieldIndex', field: 't', schema: { type: 'text' } });
  assert.deepEqual(rowsOf(replica, { kind: 'match', key: 't', match }).rows, []);
  replica.apply({ kind: 'createFieldIndex', field: 't', schema: TEXT });
  assert.deepEqual(rowsOf(replica, { kind: 'match', key: 't', match }).rows, [0]);
});

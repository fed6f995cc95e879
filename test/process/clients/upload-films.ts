/** The collections that the reading requests ask. */

import type { Args, Doors } from './doors.js';
import { FILM_INDEXES, FILMS, FILMS_SETTINGS } from './films.js';
import type { Json } from './values.js';

export async function uploadFilms(doors: Doors): Promise<void> {
  for (const name of ['films', 'more-films']) await doors.rest('create_collection', name, FILMS_SETTINGS);
  for (const [field_name, field_schema] of FILM_INDEXES) {
    await doors.rest('create_field_index', 'films', { field_name, field_schema, wait: true });
  }
  await doors.rest('upsert_points', 'films', { points: FILMS as Json, wait: true });
  await doors.rest('create_collection', 'unnamed', { vectors: { size: 3, distance: 'Manhattan' } });
  const unnamed = FILMS.map(({ id, payload, vector }) => ({ id, payload, vector: (vector as Args).sound }) as Json);
  await doors.rest('upsert_points', 'unnamed', { points: unnamed, wait: true });
  // Points to look up: by ids of films, by values of `length` and by those of `reference`.
  const ids = [1, 2, 3, 61, 62, 63, 64, '11111111-1111-4111-8111-000000000003', '11111111-1111-4111-8111-000000000004'];
  const more = ids.map((id, at) => ({ ...(FILMS[at + 20] as Args), id }));
  await doors.rest('upsert_points', 'more-films', { points: more, wait: true });
}

/** Queries of a fixture as a reader carries them out, with what it explains of them. */

import assert from 'node:assert/strict';
import type { ExplainedSearch, ExplainRequest } from '../../../protocols/model/explanation.js';
import { runRead } from '../../../storage/reader/operations.js';
import { type CollectionFixture, contextOf } from './collection-fixture.js';

export interface ExplainedAnswer {
  readonly ids: number[];
  readonly points: unknown;
  /** Of the first segment. */
  readonly search: ExplainedSearch;
  /** Of each segment. */
  readonly searches: readonly ExplainedSearch[];
}

/** body: of `points/query`. */
export function explainedQuery(fixture: CollectionFixture, body: object): ExplainedAnswer {
  const explain: ExplainRequest = { wanted: true, explanation: null };
  const bytes = Buffer.from(JSON.stringify(body));
  const answer = runRead('query', { path: {}, query: {}, body: bytes, deadlineMs: 0, explain }, contextOf(fixture));
  const { points } = JSON.parse(new TextDecoder().decode(answer)) as { points: { id: number }[] };
  const searches = explain.explanation?.shards[0]?.segments.map((segment) => segment.searches[0] as ExplainedSearch) ?? [];
  const [search] = searches;
  assert.ok(search !== undefined);
  return { ids: points.map(({ id }) => id), points, search, searches };
}

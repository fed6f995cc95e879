/** A thread that reads points and finds places for their vectors, so that the page answers meanwhile. */

import type { Point } from '../model/api-types.js';
import { project } from '../model/projection.js';
import { vectorsOf } from '../model/vectors.js';

/** What to read and to place. */
export interface PlaceWish {
  /** That pages of points are asked for at. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The vector's name; empty for the unnamed one. */
  readonly using: string;
  readonly dim: number;
  readonly wanted: number;
}

export type PlaceNews =
  /** Points that have the vector, without it. */
  | { readonly kind: 'read'; readonly points: readonly Point[] }
  | { readonly kind: 'allRead' }
  /** places: [count, 2]. */
  | { readonly kind: 'placed'; readonly places: Float32Array }
  /** The node refused a request; status 0: it cannot be reached. */
  | { readonly kind: 'refused'; readonly status: number; readonly text: string };

const PAGE = 2000;

interface Page {
  readonly points: readonly Point[];
  readonly next_page_offset: number | string | null;
}

class Refused extends Error {
  constructor(
    readonly status: number,
    readonly text: string,
  ) {
    super(text);
  }
}

self.onmessage = ({ data }: MessageEvent<PlaceWish>): void => {
  place(data).catch((error: unknown) => {
    const { status, text } = error instanceof Refused ? error : { status: 0, text: 'The node cannot be reached.' };
    tell({ kind: 'refused', status, text });
  });
};

function tell(news: PlaceNews, transfer: Transferable[] = []): void {
  self.postMessage(news, { transfer });
}

async function place(wish: PlaceWish): Promise<void> {
  const { using, dim, wanted } = wish;
  const rows = new Float32Array(wanted * dim);
  let found = 0;
  let offset: Page['next_page_offset'] = null;
  do {
    const page: Page = await readPage(wish, Math.min(PAGE, wanted - found), offset);
    const points: Point[] = [];
    for (const point of page.points) {
      const vector = vectorsOf(point)[using];
      if (vector === undefined) continue;
      rows.set(vector as number[], found++ * dim);
      points.push({ id: point.id, payload: point.payload ?? {} });
    }
    tell({ kind: 'read', points });
    offset = page.next_page_offset;
  } while (offset !== null && found < wanted);
  tell({ kind: 'allRead' });
  const places = project(rows.subarray(0, found * dim), dim);
  tell({ kind: 'placed', places }, [places.buffer]);
}

async function readPage({ path, headers, using }: PlaceWish, limit: number, offset: Page['next_page_offset']): Promise<Page> {
  const body = { limit, with_payload: true, with_vector: using === '' ? true : [using], ...(offset === null ? {} : { offset }) };
  const response = await fetch(path, { method: 'POST', headers: { ...headers }, body: JSON.stringify(body), cache: 'no-store' });
  if (!response.ok) throw new Refused(response.status, await response.text());
  return ((await response.json()) as { result: Page }).result;
}

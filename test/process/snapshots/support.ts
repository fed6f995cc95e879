/** Snapshots over REST, for tests with real nodes. */

import { createHash } from 'node:crypto';
import type { RestClient } from '../../../ops/rest-client.js';

export interface ShownSnapshot {
  readonly name: string;
  readonly creation_time: string;
  readonly size: number;
  readonly checksum: string;
}

/** Whatever comes back of a collection that a restore has to bring again: all points with vectors and payloads, by id. */
export async function contentOf(client: RestClient, collection: string): Promise<unknown[]> {
  const points: { readonly id: string | number }[] = [];
  let offset: unknown = null;
  do {
    const body = { limit: 1000, with_vector: true, with_payload: true, offset };
    const page = await client.result<{ points: typeof points; next_page_offset: unknown }>(
      'POST',
      `/collections/${collection}/points/scroll`,
      body,
    );
    points.push(...page.points);
    offset = page.next_page_offset;
  } while (offset !== null);
  return points;
}

export async function download(url: string, path: string): Promise<Buffer> {
  const answer = await fetch(`${url}${path}`);
  if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
  return Buffer.from(await answer.arrayBuffer());
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Status and body of an upload to `path`, such as `/collections/c/snapshots/upload?priority=snapshot`. */
export async function upload(url: string, path: string, archive: Uint8Array): Promise<{ readonly status: number; readonly text: string }> {
  const form = new FormData();
  form.append('snapshot', new Blob([archive as Uint8Array<ArrayBuffer>]), 'x.snapshot');
  const answer = await fetch(`${url}${path}`, { method: 'POST', body: form });
  return { status: answer.status, text: await answer.text() };
}

/** What the unmodified clients for REST and gRPC are answered with a key, with tokens and with nothing. */

import { QdrantClient as GrpcClient } from '@qdrant/js-client-grpc';
import { QdrantClient } from '@qdrant/js-client-rest';

export interface ClientUrls {
  readonly rest: string;
  readonly grpc: string;
}

export interface Credentials {
  readonly key: string;
  /** A token that reads the collection. */
  readonly reader: string;
  /** A token that has another collection. */
  readonly stranger: string;
}

/** What `askWithCredentials` finds where everything works. */
export const EXPECTED_OF_CREDENTIALS = {
  scrolled: 500,
  key: { rest: [499, 'completed'], grpc: ['499', 'Completed'] },
  reader: { rest: [499, 403], grpc: ['499', 7] },
  stranger: { rest: [403, 403], grpc: [7, 7] },
  nobody: { rest: [401, 401], grpc: [16, 16] },
};

/** Makes 500 points with the key, then reads and writes with each credential through both clients: what is found, or the status. */
export async function askWithCredentials(urls: ClientUrls, credentials: Credentials, collection: string): Promise<unknown> {
  const maker = new QdrantClient({ url: urls.rest, apiKey: credentials.key });
  await maker.createCollection(collection, { vectors: { size: 2, distance: 'Dot' } });
  const points = Array.from({ length: 500 }, (_, id) => ({ id, vector: [id, 1], payload: { text: 'a'.repeat(1000) } }));
  await maker.upsert(collection, { wait: true, points });
  const scrolled = (await maker.scroll(collection, { limit: 500, with_payload: true })).points.length;
  const asked: Record<string, unknown> = { scrolled };
  for (const [name, apiKey] of [...Object.entries(credentials), ['nobody', undefined] as const]) {
    asked[name] = { rest: await overRest(urls.rest, apiKey, collection), grpc: await overGrpc(urls.grpc, apiKey, collection) };
  }
  return asked;
}

async function overRest(url: string, apiKey: string | undefined, collection: string): Promise<unknown[]> {
  const client = new QdrantClient({ url, checkCompatibility: false, ...(apiKey === undefined ? {} : { apiKey }) });
  const best = client.query(collection, { query: [1, 0], limit: 1 }).then(({ points }) => points[0]?.id);
  const written = client.deletePayload(collection, { wait: true, keys: ['no such key'], points: [1] }).then(({ status }) => status);
  return Promise.all([found(best), found(written)]);
}

async function overGrpc(url: string, apiKey: string | undefined, collectionName: string): Promise<unknown[]> {
  const points = new GrpcClient({ url, checkCompatibility: false, ...(apiKey === undefined ? {} : { apiKey }) }).api('points');
  const best = points
    .query({
      collectionName,
      query: { variant: { case: 'nearest', value: { variant: { case: 'dense', value: { data: [1, 0] } } } } },
      limit: 1n,
    })
    .then(({ result }) => String(result[0]?.id?.pointIdOptions.value));
  const written = points.deletePayload({
    collectionName,
    wait: true,
    keys: ['no such key'],
    pointsSelector: { pointsSelectorOneOf: { case: 'points', value: { ids: [{ pointIdOptions: { case: 'num', value: 1n } }] } } },
  });
  return Promise.all([found(best), found(written.then(({ result }) => (result?.status === COMPLETED ? 'Completed' : result?.status)))]);
}

/** `UpdateStatus` of gRPC. */
const COMPLETED = 2;

/** The status of an error, of REST or of gRPC, where it has one. */
function found(answer: Promise<unknown>): Promise<unknown> {
  return answer.catch((error: { status?: number; code?: number; message: string }) => error.status ?? error.code ?? error.message);
}

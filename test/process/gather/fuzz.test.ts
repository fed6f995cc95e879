/**
 * Random and hostile reads over shards of several nodes: each answers what it does on one shard, refusals with their reasons too.
 *
 * Repeat a run with TROUPE_SEED=<seed>; more requests with TROUPE_CASES=<number>.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import { type RestAnswer, RestClient } from '../../../ops/rest-client.js';
import { testSeed } from '../../seed.js';
import { bytesOf, mutated } from '../fuzz/mutations.js';
import { FUZZED_COLLECTION, FUZZED_FIELDS, fuzzedPoints, sampleRequest } from '../fuzz/requests.js';
import { gatheringNode } from './gathering-node.js';

const CASES = Number(process.env.TROUPE_CASES ?? 300);
const SHARDS = 5;
const NAMES = ['fuzzed', 'other'];
/** Answers of these are left to chance. */
const CHANCE = /sample|random/;

test('no request that only reads is answered otherwise by shards of several nodes than by one shard', {
  timeout: 120_000 + CASES * 200,
}, async (t) => {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const [one, many] = [await gatheringNode(t, 1), await gatheringNode(t, SHARDS)];
  const clients = [one, many].map(({ port }) => new RestClient(port));
  t.after(() => clients.map((client) => client.close()));
  for (const name of NAMES) await fill(clients, name, fuzzedPoints(random));
  let answered = 0;
  for (let asked = 0; asked < CASES; ) {
    const { method, path, body } = sampleRequest(random);
    const bytes = body === undefined ? undefined : bytesOf(random.integer(3) === 0 ? body : mutated(body, random), random);
    if (!isRead(method, path) || CHANCE.test(String(bytes))) continue;
    asked++;
    const url = `/collections/fuzzed/${path}`;
    const [wanted, found] = await Promise.all(clients.map((client) => client.call(method, url, bytes)));
    const what = `TROUPE_SEED=${seed} ${method} ${url} ${bytes?.toString('utf8').slice(0, 2000)}`;
    assert.deepEqual(toCompare(found as RestAnswer), toCompare(wanted as RestAnswer), what);
    assert.ok((found as RestAnswer).status < 500, what);
    if (found?.status === 200) answered++;
  }
  t.diagnostic(`${answered} of ${CASES} were answered; ${many.counts.reads} reads gathered by ${many.counts.asks} questions`);
  assert.ok(answered > CASES / 10 && answered < CASES);
});

async function fill(clients: readonly RestClient[], name: string, points: readonly object[]): Promise<void> {
  for (const client of clients) {
    await client.result('PUT', `/collections/${name}`, FUZZED_COLLECTION);
    for (const [field_name, field_schema] of Object.entries(FUZZED_FIELDS)) {
      await client.result('PUT', `/collections/${name}/index?wait=true`, { field_name, field_schema });
    }
    await client.result('PUT', `/collections/${name}/points?wait=true`, { points });
  }
}

function isRead(method: string, path: string): boolean {
  if (path.startsWith('//') || path.startsWith('points/batch')) return false;
  if (method === 'GET') return /^points\//.test(path);
  return method === 'POST' && /^(points|facet)(\/(scroll|count|query|search|recommend|discover))?(\/(batch|groups))?(\?.*)?$/.test(path);
}

/** Versions are numbers of each shard's own. */
function toCompare({ status, body }: RestAnswer): unknown {
  const { result, status: state } = body as { result?: unknown; status?: { error?: unknown } };
  return { status, error: state?.error, result: withoutVersions(result) };
}

function withoutVersions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutVersions);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([key, one]) => (key === 'version' ? [] : [[key, withoutVersions(one)]])));
}

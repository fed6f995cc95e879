/**
 * SIGKILL at random moments while snapshots are made, uploaded, restored and deleted. Afterwards every snapshot that is listed is whole, and a
 * collection has what it had before the call that was under way, or after it.
 *
 * Repeat a run with TROUPE_SEED=<seed>; more kills with TROUPE_KILLS=<number>.
 */

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startNodeProcess } from '../../../ops/node-process.js';
import { type RandomNumbers, seededRandom } from '../../../ops/random.js';
import { RestClient } from '../../../ops/rest-client.js';
import { testSeed } from '../../seed.js';
import { temporaryFolder } from '../support.js';
import { contentOf, download, type ShownSnapshot, sha256Of, upload } from './support.js';

const KILLS = Number(process.env.TROUPE_KILLS ?? 15);
const POINTS = 300;
const LATE_MS_MAX = 250;
const KEPT_MAX = 3;

interface Model {
  /** The mark that each point of the collection has; undefined: the collection may not be there. */
  mark: number;
  /** Marks that it may have as well, by a call without an answer. */
  readonly maybe: Set<number>;
  /** The mark of the collection in each snapshot that was made. */
  readonly marks: Map<string, number>;
  nextMark: number;
}

interface Running {
  readonly client: RestClient;
  readonly url: string;
  kill(): Promise<unknown>;
}

/** One call of a random kind. It throws when the connection breaks. */
async function call(node: Running, model: Model, random: RandomNumbers): Promise<void> {
  const { client, url } = node;
  const listed = await client.result<ShownSnapshot[]>('GET', '/collections/c/snapshots');
  const known = listed.filter(({ name }) => model.marks.has(name));
  const one = known[random.integer(Math.max(1, known.length))];
  const kind = one === undefined ? 0 : random.integer(5);
  if (kind === 0) {
    const { name } = await client.result<ShownSnapshot>('POST', '/collections/c/snapshots');
    model.marks.set(name, model.mark);
    return;
  }
  const { name } = one as ShownSnapshot;
  const marked = model.marks.get(name) as number;
  if (kind === 1) {
    if (known.length > KEPT_MAX) await client.result('DELETE', `/collections/c/snapshots/${name}`);
    return;
  }
  if (kind === 2) {
    const mark = model.nextMark++;
    // Shards take their parts of a write one by one: what a kill leaves of it is settled before the next call.
    model.maybe.add(mark);
    const payload = { mark };
    await client.result('POST', '/collections/c/points/payload?wait=true', { payload, filter: {} });
    model.mark = mark;
  } else {
    model.maybe.add(marked);
    if (kind === 3) {
      const archive = await download(url, `/collections/c/snapshots/${name}`);
      const { status, text } = await upload(url, '/collections/c/snapshots/upload?priority=snapshot', archive);
      assert.equal(status, 200, text);
    } else {
      const location = `${url}/collections/c/snapshots/${name}`;
      await client.result('PUT', '/collections/c/snapshots/recover', { location, priority: 'snapshot' });
    }
    model.mark = marked;
  }
  model.maybe.clear();
}

async function checkAll({ client, url }: Running, folder: string, model: Model): Promise<void> {
  for (const { checksum, name, size } of await client.result<ShownSnapshot[]>('GET', '/collections/c/snapshots')) {
    const bytes = await download(url, `/collections/c/snapshots/${name}`);
    assert.equal(bytes.length, size, name);
    assert.equal(sha256Of(bytes), checksum, name);
  }
  const points = (await contentOf(client, 'c')) as { payload: { mark: number } }[];
  assert.equal(points.length, POINTS);
  const marks = new Set(points.map(({ payload }) => payload.mark));
  const allowed = new Set([model.mark, ...model.maybe]);
  assert.ok(
    [...marks].every((mark) => allowed.has(mark)),
    `the collection has ${[...marks]}, it was ${model.mark} and may be ${[...model.maybe]}`,
  );
  const isWrite = model.maybe.size === 1 && model.maybe.has(model.nextMark - 1);
  if (!isWrite) assert.equal(marks.size, 1, `a restore was done by halves: ${[...marks]}`);
  const names = (await readdir(join(folder, 'storage', 'collections'))).filter((name) => name.startsWith('.ex') || name.startsWith('.re'));
  assert.deepEqual(names, [], 'what a restore has left');
  // From here on it has one mark again.
  const mark = model.nextMark++;
  await client.result('POST', '/collections/c/points/payload?wait=true', { payload: { mark }, filter: {} });
  model.mark = mark;
  model.maybe.clear();
}

test('whatever call of snapshots a kill meets, what is listed is whole and the collection is as before or after it', async (t) => {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const folder = await temporaryFolder(t);
  const start = async (): Promise<Running> => {
    const node = await startNodeProcess({ folder });
    const client = new RestClient(node.port);
    return {
      client,
      url: node.url,
      kill: async () => {
        await node.end('SIGKILL');
        client.close();
      },
    };
  };
  const model: Model = { mark: 0, maybe: new Set(), marks: new Map(), nextMark: 1 };
  let node = await start();
  t.after(() => node.kill());
  await node.client.result('PUT', '/collections/c', { vectors: { size: 4, distance: 'Dot' }, shard_number: 2 });
  const points = Array.from({ length: POINTS }, (_, id) => ({ id, vector: [id, 1, 2, 3], payload: { mark: 0 } }));
  await node.client.result('PUT', '/collections/c/points?wait=true', { points });
  let calls = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const lateMs = random.unit() * LATE_MS_MAX;
    let isKilled = false;
    const killed = new Promise<void>((resolve, reject) => {
      setTimeout(() => {
        isKilled = true;
        node.kill().then(() => resolve(), reject);
      }, lateMs);
    });
    while (!isKilled) {
      try {
        await call(node, model, random);
        calls++;
      } catch (error) {
        if (!isKilled) throw error;
      }
    }
    await killed;
    node = await start();
    await checkAll(node, folder, model);
  }
  t.diagnostic(`${calls} calls and ${KILLS} kills`);
});

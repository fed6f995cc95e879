import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SpreadActs } from '../../../storage/reader/spread-read.js';
import { readSpread } from '../../../storage/reader/spread-read.js';
import type { PeerShare, PortionResult, RawRequest, SpreadCollection } from '../../../storage/threads/messages.js';
import { decodePortion, encodePortionAnswer } from '../../../storage/threads/portion-codec.js';
import { sampleConfig } from '../../actors/samples.js';

const HERE: PeerShare = { peer: 1, isOwn: true, shards: [0, 2] };
const THERE: PeerShare = { peer: 2, isOwn: false, shards: [1, 3] };
const REPLICAS = new Map([
  [0, 'c/0'],
  [2, 'c/2'],
]);
const COLLECTION: SpreadCollection = {
  kind: 'spread',
  name: 'c',
  place: { uid: 7, params: sampleConfig().params, shards: [0, 1, 2, 3].map((id) => ({ id, key: null, active: true })) },
  shardMapVersion: 1,
  replicas: REPLICAS,
  served: { name: 'c', uid: 7, shardMapVersion: 1, self: 1, replicas: REPLICAS },
  ways: [[HERE, THERE]],
  hasOthers: false,
};

function request(body: unknown): RawRequest {
  return { path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: Date.now() + 10_000 };
}

function counted(count: number, shards: number, position = 5): PortionResult {
  const body = new Uint8Array(encodePortionAnswer({ answers: [{ kind: 'count', count }] }));
  return { body, positions: Array.from({ length: shards }, () => position) };
}

/** This node counts 4 points, its peer 6. */
function acts(change: Partial<SpreadActs> = {}): SpreadActs & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    own: (replicas) => {
      asked.push(`own ${replicas.join('+')}`);
      return counted(4, replicas.length);
    },
    ask: async ({ peer, shards }) => {
      asked.push(`peer ${peer} ${shards.join('+')}`);
      return counted(6, shards.length);
    },
    isNewest: () => true,
    random: () => 0.9,
    ...change,
  };
}

test('a small read is merged from what is here and what peers answer, and peers are asked first', async () => {
  const over = acts();
  const answer = await readSpread(COLLECTION, 'count', request({}), over);
  assert.equal(Buffer.from(answer as Uint8Array).toString(), '{"count":10}');
  assert.deepEqual(over.asked, ['peer 2 1+3', 'own c/0+c/2']);
});

test('a read by ids asks only the shards that may have them', async () => {
  const asked: (readonly number[])[] = [];
  const none = (shards: number): PortionResult => ({
    body: new Uint8Array(
      encodePortionAnswer({
        answers: [
          {
            kind: 'hits',
            shards: [],
            ids: [],
            scores: new Float64Array(0),
            versions: new Float64Array(0),
            orderValues: null,
            shown: null,
            groups: null,
            total: 0,
          },
        ],
      }),
    ),
    positions: Array.from({ length: shards }, () => 1),
  });
  const over = acts({
    own: (replicas) => {
      asked.push(replicas.map((key) => Number(key.slice(2))));
      return none(replicas.length);
    },
    ask: async ({ shards }, body) => {
      assert.equal(decodePortion(body).asks[0]?.kind, 'points');
      asked.push(shards);
      return none(shards.length);
    },
  });
  await readSpread(COLLECTION, 'retrieve', request({ ids: [1] }), over);
  assert.equal(asked.flat().length, 1);
});

test('a doubt is handed on: a peer that fails, a replica that cannot be read at once, a view that is older than the answer', async () => {
  for (const doubt of [
    { ask: () => Promise.reject(new Error('lost')) },
    { own: () => null },
    { isNewest: () => false },
    {
      own: () => {
        throw new Error('gone');
      },
    },
  ])
    await assert.rejects(readSpread(COLLECTION, 'count', request({}), acts(doubt)) as Promise<unknown>);
});

test('a shard that nobody is asked for is handed on', async () => {
  const lacking: SpreadCollection = { ...COLLECTION, ways: [[HERE]] };
  const ids = Array.from({ length: 60 }, (_, id) => id);
  await assert.rejects(readSpread(lacking, 'retrieve', request({ ids }), acts()) as Promise<unknown>);
});

test('reads that are not small are handed on unread', () => {
  const over = acts();
  const facet = readSpread(COLLECTION, 'facet', request({ key: 'k' }), over);
  const batch = readSpread(COLLECTION, 'queryBatch', request({ searches: [{ limit: 1 }, { limit: 2 }] }), over);
  assert.deepEqual([facet, batch, over.asked], [null, null, []]);
});

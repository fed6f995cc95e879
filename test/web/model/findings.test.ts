/** «Why is it slow, yellow or Dead?»: made situations, and the sentence that answers. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActorReport, CollectionCluster, CollectionInfo, ShownCluster, Telemetry } from '../../../web/model/api-types.js';
import { type FindingFacts, findingsOf } from '../../../web/model/findings.js';

const INFO: CollectionInfo = {
  status: 'green',
  optimizer_status: 'ok',
  points_count: 10,
  indexed_vectors_count: 0,
  segments_count: 1,
  config: { params: {}, optimizer_config: {} },
  payload_schema: {},
};
const ON_THREE: ShownCluster = {
  status: 'enabled',
  peer_id: 1,
  peers: { 1: { uri: 'http://a:1' }, 2: { uri: 'http://b:1' }, 3: { uri: 'http://c:1' } },
  raft_info: { term: 3, commit: 9, pending_operations: 0, leader: 1, role: 'Leader' },
  message_send_failures: {},
};
const AWAY = { ...ON_THREE, message_send_failures: { 'http://b:1': { count: 5, latest_error: 'connection refused' } } };

/** The states of a shard's replicas on the peers 1 to 3. */
function replicas(...states: readonly string[]): CollectionCluster {
  const [own = 'Active', ...others] = states;
  return {
    peer_id: 1,
    shard_count: 1,
    local_shards: [{ shard_id: 0, points_count: 10, state: own }],
    remote_shards: others.map((state, at) => ({ shard_id: 0, peer_id: at + 2, state })),
    shard_transfers: [],
  };
}

const ACTOR: ActorReport = {
  path: '/node',
  kind: 'node',
  state: 'Ready',
  mailbox: { depth: 0, capacity: 1024 },
  processed: 1,
  restarts: 0,
  lastError: null,
  uptimeMs: 1,
  recent: [],
  children: [],
};
const WORKER = { name: 'reader-0', kind: 'reader', begun: true, up: true, stuck: null, restarts: 0, depth: 0, processed: 1 };

function telemetryOf(engine: object, actors: ActorReport = ACTOR): Telemetry {
  return { app: { version: '1', startup: '', engine: { workers: [WORKER], waitingReads: 0, ...engine }, actors } };
}

interface Collection {
  readonly info?: object;
  readonly replicas?: CollectionCluster;
  readonly running?: object;
}

function found(
  { info, replicas: cluster = replicas('Active'), running }: Collection,
  facts: Omit<FindingFacts, 'collections'> = {},
): string[] {
  const optimizations = running as FindingFacts['collections'][number]['optimizations'];
  return textsOf({ ...facts, collections: [{ name: 'c', info: { ...INFO, ...info }, cluster, ...(optimizations && { optimizations }) }] });
}

function textsOf(facts: FindingFacts): string[] {
  return findingsOf(facts).map(({ more, sentence, subject, tone }) => `${tone} ${subject}: ${sentence} → ${more.join('/')}`);
}

test('nothing is found where all is well', () => {
  assert.deepEqual(found({}, { cluster: ON_THREE, telemetry: telemetryOf({}) }), []);
});

test('1: yellow, as an optimizer works', () => {
  const running = {
    summary: { queued_optimizations: 0, queued_segments: 0, queued_points: 0, idle_segments: 0 },
    running: [{ optimizer: 'indexing', segments: [{ uuid: 'a', points_count: 50_000 }] }],
  };
  assert.deepEqual(found({ info: { status: 'yellow' }, running }), [
    'busy c: The indexing optimizer works on 1 segment with 50,000 points. → collections/c/optimizations',
  ]);
});

test('2: yellow, as writes wait to be applied', () => {
  assert.ok(
    found({ info: { status: 'yellow', update_queue: { length: 1200 } } }).includes(
      'busy c: 1,200 operations are on disk and wait to be applied: reads do not see them yet. → collections/c/info',
    ),
  );
});

test('3: grey, as optimizers are off', () => {
  assert.deepEqual(found({ info: { status: 'grey' } }), [
    'wait c: Optimizations are due, and begin with the next change of the collection or a restart of the node. → collections/c/optimizations',
  ]);
});

test('4: red, as an optimizer failed', () => {
  assert.deepEqual(found({ info: { status: 'red', optimizer_status: { error: 'the disk is full' } } }), [
    'bad c: the disk is full → collections/c/optimizations',
  ]);
});

test('5: Dead, as the node cannot be reached', () => {
  assert.deepEqual(found({ info: { status: 'yellow' }, replicas: replicas('Active', 'Dead') }, { cluster: AWAY }), [
    'bad Cluster: node 2 (http://b:1) cannot be reached: connection refused. → cluster',
    'bad c: 1 of 2 replicas is Dead; the others answer meanwhile. → collections/c/replicas',
    'bad c: Shard 0 on node 2 is Dead: its node cannot be reached (connection refused). It gets what it lacks when the node is back. → collections/c/replicas',
  ]);
});

test('6: Dead, and being filled', () => {
  const transfer = { shard_id: 0, from: 1, to: 2, sync: true, method: 'stream_records', comment: 'filling, 40 of 100 points (40 %)' };
  const cluster = { ...replicas('Active', 'Partial'), shard_transfers: [transfer] };
  assert.deepEqual(found({ info: { status: 'yellow' }, replicas: cluster }, { cluster: ON_THREE }), [
    'busy c: 1 shard transfer under way. → collections/c/replicas',
    'busy c: Shard 0 on node 2 is being filled from node 1: by stream_records, filling, 40 of 100 points (40 %). → collections/c/replicas',
  ]);
});

test('7: Dead, and waiting for its turn', () => {
  const [, reason] = found({ info: { status: 'yellow' }, replicas: replicas('Active', 'Dead') }, { cluster: ON_THREE });
  assert.match(reason ?? '', /is Dead, and its node is there: it waits for its turn to be filled/);
});

test('8: Dead, and nothing can fill it', () => {
  const reasons = found(
    { info: { status: 'red', optimizer_status: { error: 'a file is damaged' } }, replicas: replicas('Dead') },
    { cluster: ON_THREE },
  );
  assert.deepEqual(reasons, [
    'bad c: a file is damaged → collections/c/replicas',
    'bad c: Shard 0 on node 1 is Dead, and no replica of the shard is Active: nothing can fill it, and its points can be neither read nor written. → collections/c/replicas',
  ]);
});

test('9: points do not show, as they wait for their index', () => {
  assert.deepEqual(found({ info: { update_queue: { length: 0, deferred_points: 5000 } } }), [
    'busy c: 5,000 points stay hidden until they are indexed. → collections/c/info',
  ]);
});

test('10: slow, as reads wait for readers', () => {
  assert.deepEqual(found({}, { telemetry: telemetryOf({ waitingReads: 37 }) }), [
    'busy This node: 37 reads wait for a reader: all readers are at work, so each request takes longer. → metrics',
  ]);
});

test('11: slow, as a thread gives no sign of life', () => {
  assert.deepEqual(found({}, { telemetry: telemetryOf({ workers: [{ ...WORKER, stuck: { call: 'query' } }] }) }), [
    'bad This node: The thread reader-0 gives no sign of life: what it was asked waits, and it is replaced. → actors',
  ]);
});

test('12: writes fail, as the disk is full; builds wait, as memory is', () => {
  const disk = { total_bytes: 1e12, free_bytes: 2e8, refuses_writes: true };
  const memory = { budget_bytes: 2e9, used_bytes: 1.9e9 };
  assert.deepEqual(found({}, { telemetry: telemetryOf({ disk, memory }) }), [
    'bad This node: The disk has only 200 MB left: writes are refused, reads and deletions go on. → advice',
    'busy This node: 1.9 GB of 2 GB of memory are used: builds wait, and beyond it writes are refused. → metrics',
  ]);
});

test('13: collections cannot be changed, as there is no leader', () => {
  const raft_info = { term: 3, commit: 9, pending_operations: 0, leader: null, role: 'Candidate' };
  assert.match(textsOf({ collections: [], cluster: { ...ON_THREE, raft_info } })[0] ?? '', /^bad Cluster: The cluster has no leader/);
});

test('14: an actor crashes again and again', () => {
  const child: ActorReport = { ...ACTOR, path: '/node/c', state: 'Restarting', restarts: 3, lastError: { message: 'boom', timeMs: 1 } };
  assert.deepEqual(textsOf({ collections: [], telemetry: telemetryOf({}, { ...ACTOR, children: [child] }) }), [
    'bad This node: The actor /node/c has crashed and waits for its 4. restart: boom → actors',
  ]);
});

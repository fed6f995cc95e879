import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCron } from '../../../actors/backups/cron.js';
import { TextBytes } from '../../../http/context/text-bytes.js';
import { MetricsWriter } from '../../../http/reports/prometheus.js';
import { openDoor } from '../rest/fake-node.js';

test('metrics count requests by route and status and carry the prefix', async () => {
  const { url, door } = await openDoor({ metricsPrefix: 'my_' });
  try {
    await fetch(`${url}/collections/c`, { method: 'PUT', body: '{"vectors":{"a":{"size":4,"distance":"Dot"}}}' });
    await fetch(`${url}/collections/c/points/count`, { method: 'POST', body: '{}' });
    await fetch(`${url}/collections/none/points/count`, { method: 'POST', body: '{}' });
    const response = await fetch(`${url}/metrics`);
    assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
    const lines = (await response.text()).split('\n');
    const count = 'method="POST",endpoint="/collections/{collection_name}/points/count"';
    for (const line of [
      '# TYPE my_app_info gauge',
      'my_collections_total 1',
      'my_collections_vector_total 3',
      'my_collection_points{id="c"} 3',
      'my_collection_vectors{collection="c",vector="a"} 3',
      'my_collection_running_optimizations{id="c"} 0',
      'my_collection_active_replicas_min 1',
      'my_collection_dead_replicas 0',
      `my_rest_responses_total{${count},status="200"} 1`,
      `my_rest_responses_total{${count},status="404"} 1`,
      `my_rest_responses_duration_seconds_bucket{${count},status="200",le="+Inf"} 1`,
      'my_engine_waiting_reads 2',
      'my_engine_worker_queue_depth{worker="reader-0",kind="reader"} 1',
      'my_actor_mailbox_depth{kind="collection"} 1',
    ]) {
      assert.ok(lines.includes(line), line);
    }
    assert.doesNotMatch(await (await fetch(`${url}/metrics?anonymize=true`)).text(), /id="c"/);
    assert.equal((await fetch(`${url}/metrics?anonymize=perhaps`)).status, 400);
    const each = (await (await fetch(`${url}/metrics?per_collection=true`)).text())
      .split('\n')
      .filter((line) => /_responses_total\{/.test(line));
    assert.ok(each.includes(`my_rest_responses_total{${count},status="200",collection="c"} 1`), each.join('\n'));
    assert.ok(
      each.every((line) => line.includes('collection="c"')),
      'of no name that no collection has, and no request that names none',
    );
    assert.doesNotMatch(await (await fetch(`${url}/metrics?per_collection=true&anonymize=true`)).text(), /collection="c"/);
  } finally {
    await door.close(1000);
  }
});

test('metrics and telemetry tell how many snapshots were made and are under way, by collection', async () => {
  const { door, node, url } = await openDoor();
  try {
    await fetch(`${url}/collections/c`, { method: 'PUT', body: '{"vectors":{"size":4,"distance":"Dot"}}' });
    node.snapshots.shown = { created: 3, creating: 1, restoring: 2 };
    const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n');
    for (const line of ['snapshot_created_total{id="c"} 3', 'snapshot_creation_running{id="c"} 1', 'snapshot_recovery_running{id="c"} 2'])
      assert.ok(lines.includes(line), line);
    const { result } = (await (await fetch(`${url}/telemetry?details_level=2`)).json()) as {
      result: { collections: { snapshots: unknown } };
    };
    assert.deepEqual(result.collections.snapshots, [
      { id: 'c', running_snapshots: 1, running_snapshot_recovery: 2, total_snapshot_creations: 3 },
    ]);
  } finally {
    await door.close(1000);
  }
});

test('labels are escaped, buckets cumulated', () => {
  const out = new TextBytes();
  const writer = new MetricsWriter('', out);
  writer.family('a', 'gauge', 'help').sample('a', { name: 'x"\\\n' }, 1);
  writer.family('h', 'histogram', 'help').histogram('h', {}, [1, 2], [3, 4, 5], 9);
  assert.equal(
    Buffer.concat(out.chunks()).toString(),
    [
      '# HELP a help',
      '# TYPE a gauge',
      'a{name="x\\"\\\\\\n"} 1',
      '# HELP h help',
      '# TYPE h histogram',
      'h_bucket{le="1"} 3',
      'h_bucket{le="2"} 7',
      'h_bucket{le="+Inf"} 12',
      'h_sum 9',
      'h_count 12',
      '',
    ].join('\n'),
  );
});

test('metrics tell of each plan of backups when it last succeeded and how often it failed, as soon as that is known', async () => {
  const { door, node, url } = await openDoor();
  const read = async (): Promise<string[]> =>
    (await (await fetch(`${url}/metrics`)).text()).split('\n').filter((line) => /^backup_/.test(line));
  try {
    assert.deepEqual(await read(), []);
    const schedule = parseCron('@daily');
    assert.ok(typeof schedule !== 'string');
    const plan = { name: 'a', schedule, collections: 'all', keep: null, verify: 'none' } as const;
    const last = { made: 1, bytes: 42, removed: 0, failures: ['no room'], dateMs: 9000, durationMs: 1500 };
    node.backups.plans = [
      { plan, nextMs: 60_000, lastSuccessMs: 1500, failures: 2, last },
      { plan: { ...plan, name: 'b' }, nextMs: 120_000, lastSuccessMs: null, failures: 0, last: null },
    ];
    assert.deepEqual(await read(), [
      'backup_last_success_timestamp_seconds{plan="a"} 1.5',
      'backup_next_timestamp_seconds{plan="a"} 60',
      'backup_next_timestamp_seconds{plan="b"} 120',
      'backup_failures_total{plan="a"} 2',
      'backup_failures_total{plan="b"} 0',
      'backup_last_duration_seconds{plan="a"} 1.5',
      'backup_last_size_bytes{plan="a"} 42',
    ]);
  } finally {
    await door.close(1000);
  }
});

/** Imports and exports against a real node, which is source and target. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { LAUNCHER, type RunningNode, startNodeProcess } from '../../../ops/node-process.js';
import { RestClient } from '../../../ops/rest-client.js';
import { until } from '../../process/support.js';

let folder: string;
let node: RunningNode;
let client: RestClient;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'troupe-import-'));
  node = await startNodeProcess({ folder });
  client = new RestClient(node.port);
});
after(async () => {
  client?.close();
  await node?.end('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** `troupe` with these arguments, which can be killed. */
function started(...args: string[]) {
  const child = spawn(LAUNCHER, [...args, '--url', node.url, '--json'], { cwd: folder });
  const texts = { out: '', error: '' };
  child.stdout.on('data', (chunk) => {
    texts.out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    texts.error += chunk;
  });
  const ended = new Promise<{ code: number | null; error: string; result: ImportFigures }>((done) => {
    child.on('close', (code) => done({ code, error: texts.error, result: texts.out === '' ? {} : JSON.parse(texts.out) }));
  });
  return { ended, kill: () => child.kill('SIGKILL') };
}

interface ImportFigures {
  readonly points?: number;
  readonly before?: number;
  readonly total?: number;
  readonly problems?: readonly string[];
  readonly digests?: { readonly source: string; readonly target: string };
}

const POINTS = 600;
const IMPORT = 'import';
const SETTINGS = {
  vectors: {
    dense: { size: 3, distance: 'Cosine', quantization_config: { scalar: { type: 'int8', always_ram: true } } },
    parts: { size: 2, distance: 'Dot', multivector_config: { comparator: 'max_sim' }, datatype: 'float16' },
  },
  sparse_vectors: { words: { modifier: 'idf', index: { on_disk: true } } },
  shard_number: 2,
  hnsw_config: { m: 8, payload_m: 4 },
  optimizers_config: { indexing_threshold: 20000 },
  strict_mode_config: { enabled: true, max_query_limit: 5000 },
  metadata: { owner: 'tests' },
};

async function makeSource(): Promise<void> {
  await client.result('PUT', '/collections/source', SETTINGS);
  await client.result('POST', '/collections/aliases', {
    actions: [{ create_alias: { alias_name: 'places', collection_name: 'source' } }],
  });
  const points = Array.from({ length: POINTS }, (_, n) => ({
    id: n % 3 === 0 ? `00000000-0000-4000-8000-${String(n).padStart(12, '0')}` : n,
    vector: {
      dense: [n + 1, (n * 7) % 13, 1],
      ...(n % 2 === 0
        ? {
            parts: [
              [n % 5, 1],
              [0.5, n % 7],
            ],
          }
        : {}),
      ...(n % 4 === 0 ? { words: { indices: [n % 10, 100], values: [0.5, 1] } } : {}),
    },
    payload: { n, city: ['Berlin', 'London'][n % 2], nested: { list: [n, 'x', null] } },
  }));
  const body = JSON.stringify({ points }).replace('"n":1,', '"n":1,"float":1.0,"long":12345678901234567890,');
  await client.result('PUT', '/collections/source/points?wait=true', body);
  await client.result('PUT', '/collections/source/index?wait=true', {
    field_name: 'city',
    field_schema: { type: 'keyword', is_tenant: true },
  });
  await client.result('PUT', '/collections/source/index?wait=true', { field_name: 'n', field_schema: 'integer' });
}

test('an import from a server that is killed goes on where it was, and has all settings, indexes and points in the end', async () => {
  await makeSource();
  const state = join(folder, '.troupe-import-copy.json');
  const args = [IMPORT, 'copy', node.url, '--from-collection', 'source', '--verify', 'full', '--batch', '25'];
  const first = started(...args, '--rate', '60', '--parallel', '1');
  const written = async (): Promise<number> =>
    existsSync(state) ? (JSON.parse(readFileSync(state, 'utf8')) as { points: number }).points : 0;
  await until(written, (points) => points > 0);
  first.kill();
  assert.equal((await first.ended).code, null);
  const before = await written();
  assert.ok(before > 0 && before < POINTS, `${before} points`);

  const { code, error, result } = await started(...args).ended;
  assert.equal(code, 0, error);
  assert.match(error, /goes on after/);
  assert.match(error, /the alias places is not copied: it is a name of source here/);
  assert.deepEqual([result.before, result.points, result.total, result.problems], [before, POINTS - before, POINTS, []]);
  assert.equal(result.digests?.source, result.digests?.target);
  assert.ok(!existsSync(state), 'nothing is left to go on with');
  const infos = await Promise.all(
    ['source', 'copy'].map((name) => client.result<{ config: unknown; payload_schema: unknown }>('GET', `/collections/${name}`)),
  );
  assert.deepEqual(infos[1]?.config, infos[0]?.config);
  assert.deepEqual(infos[1]?.payload_schema, infos[0]?.payload_schema);
  const exact = await client.call('GET', '/collections/copy/points/1');
  assert.match(exact.text, /"float":1\.0,"long":12345678901234567890,/);

  const again = await started(...args).ended;
  assert.equal(again.code, 1);
  assert.match(again.error, /copy has 600 points.*--add/);
});

test('what is exported as JSONL or Parquet is imported again, point for point', async () => {
  for (const file of ['points.jsonl', 'points.parquet']) {
    const exported = await started('export', 'source', file).ended;
    assert.equal(exported.code, 0, exported.error);
    await client.result('PUT', '/collections/back', SETTINGS);
    const imported = await started(IMPORT, 'back', file).ended;
    assert.equal(imported.code, 0, imported.error);
    assert.equal(imported.result.total, POINTS);
    const [source, back] = await Promise.all(
      ['source', 'back'].map(async (name) =>
        client.result<{ points: unknown[] }>('POST', `/collections/${name}/points/scroll`, { limit: POINTS, with_vector: true }),
      ),
    );
    assert.deepEqual(back?.points, source?.points, file);
    await client.result('DELETE', '/collections/back');
  }
});

test('a copy that differs from its source ends with exit code 1 and the difference', async () => {
  await client.result('POST', '/collections/copy/points/delete?wait=true', { points: [1] });
  const { code, error, result } = await started(
    ...[
      'import',
      'copy',
      node.url,
      '--from-collection',
      'source',
      '--add',
      '--verify',
      'sample',
      '--state',
      'other.json',
      '--batch',
      '1000',
    ],
  ).ended;
  assert.equal(code, 0, error);
  assert.deepEqual(result.problems, []);
  await client.result('PUT', '/collections/copy/points?wait=true', { points: [{ id: 100000, vector: { dense: [1, 2, 3] } }] });
  const differs = await started(...[IMPORT, 'copy', node.url, '--from-collection', 'source', '--add', '--batch', '1000']).ended;
  assert.equal(differs.code, 1);
  assert.match(differs.error, /600 points at the source, 601 here/);
});

test('a file makes the collection that is missing, and a row that is wrong is named', async () => {
  await writeFile(join(folder, 'made.csv'), 'id,v,city\n1,"[1,2]",Berlin\n2,"[3,4]",London\n');
  const made = await started(IMPORT, 'made', 'made.csv', '--vector', 'v', '--distance', 'Dot').ended;
  assert.deepEqual([made.code, made.result.total], [0, 2], made.error);
  const { points } = await client.result<{ points: unknown[] }>('POST', '/collections/made/points/scroll', { with_vector: true });
  assert.deepEqual(points[0], { id: 1, payload: { city: 'Berlin' }, vector: [1, 2] });
  await writeFile(join(folder, 'made.csv'), 'id,v\n1,"[1,2]"\n2,nonsense\n');
  const wrong = await started(IMPORT, 'made', 'made.csv', '--vector', 'v').ended;
  assert.equal(wrong.code, 2);
  assert.match(wrong.error, /made\.csv, row 2: column 'v'/);
});

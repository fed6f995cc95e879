import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AccessLog } from '../../../http/audit/access-log.js';
import { allCallLogs } from '../../../http/context/call-log.js';
import { nodeFor, temporaryFolder, until } from '../../process/support.js';

const KEY = 'the-key-of-the-access-log-test';

interface Line {
  readonly level: string;
  readonly module: string;
  readonly message: string;
  readonly request_id: string;
  readonly operation: string;
  readonly collection?: string;
  readonly status: number;
  readonly who: string;
  readonly reason?: string;
}

test('each answer of a node has a line with its request id, who asked, and why it was refused; no line has a key', async (t) => {
  const node = await nodeFor(t, {
    folder: await temporaryFolder(t),
    environment: { SERVICE__LOG_LEVEL: 'WARN,access=INFO', SERVICE__LOGGER__FORMAT: 'json', SERVICE__SERVICE__API_KEY: KEY },
  });
  const ask = async (path: string, headers: Record<string, string>, body?: unknown) =>
    (
      await fetch(node.url + path, { headers, ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }) })
    ).arrayBuffer();
  await ask('/healthz', {});
  await ask('/collections', { 'api-key': KEY, 'x-request-id': 'mine-1' });
  await ask('/collections/none/points/count', { 'api-key': KEY }, {});
  await ask('/collections', { 'api-key': 'wrong' });
  const lines = await until(
    async () =>
      node
        .log()
        .split('\n')
        .filter((line) => line.includes('"access"'))
        .map((line) => JSON.parse(line) as Line),
    (all) => all.length >= 3,
  );
  assert.deepEqual(
    lines.map(({ collection, level, message, operation, status, who }) => [level, message, operation, collection, status, who]),
    [
      ['INFO', 'answered', 'get_collections', undefined, 200, 'key service.api_key'],
      ['WARN', 'refused', 'count_points', 'none', 404, 'key service.api_key'],
      ['WARN', 'refused', 'get_collections', undefined, 401, 'stranger no valid key'],
    ].map((line, at) => (at === 2 ? [...line.slice(0, 5), lines[2]?.who] : line)),
  );
  assert.equal(lines[0]?.request_id, 'mine-1');
  assert.notEqual(lines[1]?.request_id, lines[2]?.request_id);
  assert.match(lines[1]?.reason ?? '', /none/);
  assert.match(lines[2]?.who ?? '', /^stranger /);
  assert.ok(!node.log().includes(KEY) && !node.log().includes('wrong"'));
});

test('what a node could not do is an error, what it refuses a warning, over both doors', () => {
  const told: unknown[] = [];
  const take = (level: string) => (message: string, facts?: Record<string, unknown>) => told.push([level, message, facts?.reason]);
  const log = {
    error: take('error'),
    warn: take('warn'),
    info: take('info'),
    debug: take('debug'),
    trace: take('trace'),
    enabled: () => true,
  };
  const access = new AccessLog(log as unknown as ConstructorParameters<typeof AccessLog>[0], false, () => 0);
  const end = (protocol: 'rest' | 'grpc') =>
    access.begin(protocol, { name: 'query_points', access: 'global' }, { kind: 'anyone' }, 'c', {
      address: '10.0.0.1',
      field: () => undefined,
    });
  end('rest')?.(200, null, () => 'none');
  end('rest')?.(507, null, () => 'no room');
  end('grpc')?.(0, null);
  end('grpc')?.(3, null, () => 'wrong vector');
  end('grpc')?.(13, null, () => 'a bug');
  end('grpc')?.(16, 'no key', () => 'other');
  end('rest')?.(null, null);
  assert.deepEqual(told, [
    ['info', 'answered', undefined],
    ['error', 'failed', 'no room'],
    ['info', 'answered', undefined],
    ['warn', 'refused', 'wrong vector'],
    ['error', 'failed', 'a bug'],
    ['warn', 'refused', 'no key'],
    ['warn', 'the client was gone before its answer', undefined],
  ]);
  const open = access.begin('rest', { name: 'healthz', access: 'open' }, { kind: 'anyone' }, null, { address: '', field: () => undefined });
  assert.equal(open, null, 'probes are not told');
  const both = allCallLogs([access, null, access]);
  both?.begin('rest', { name: 'count_points', access: 'global' }, { kind: 'anyone' }, 'c', {
    address: '',
    field: () => undefined,
  })?.(200, null);
  assert.equal(told.length, 9);
});

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startGrpcDoor } from '../../../http/grpc/server.js';
import { type Harness, openDoor } from '../rest/fake-node.js';
import { failure, GrpcClient } from './client.js';

const NOT_FOUND = 5;
const IN_C = { collection_name: 'c' };
const CREATED = { seconds: String(Date.UTC(2026, 10, 21, 1, 4, 22) / 1000) };

async function opened(context: TestContext): Promise<{ readonly harness: Harness; readonly client: GrpcClient }> {
  const harness = await openDoor();
  await harness.node.createCollection('c', {} as never);
  const door = await startGrpcDoor(harness.services, { host: '127.0.0.1', port: 0, maxMessageBytes: 1 << 20, logRequests: false });
  const client = new GrpcClient(door.port);
  context.after(async () => {
    client.close();
    await door.close(0);
    await harness.door.close(0);
  });
  return { harness, client };
}

interface Described {
  readonly name: string;
  readonly creation_time: object;
  readonly size: string;
  readonly checksum: string;
}

for (const [what, suffix, place] of [
  ['a collection', '', IN_C],
  ['the whole storage', 'Full', {}],
] as const) {
  test(`snapshots of ${what} are made, listed and deleted`, async (context) => {
    const { client } = await opened(context);
    assert.deepEqual((await client.call(`Snapshots/List${suffix}`, place)).snapshot_descriptions, []);
    const { snapshot_description, time } = await client.call(`Snapshots/Create${suffix}`, place);
    const { creation_time, name, size } = snapshot_description as Described;
    assert.deepEqual([name, size, creation_time], ['made-1.snapshot', '9', CREATED]);
    assert.ok((time as number) > 0);
    assert.deepEqual((await client.call(`Snapshots/List${suffix}`, place)).snapshot_descriptions, [snapshot_description]);
    await client.call(`Snapshots/Delete${suffix}`, { ...place, snapshot_name: name });
    assert.deepEqual((await client.call(`Snapshots/List${suffix}`, place)).snapshot_descriptions, []);
    const again = await failure(client.call(`Snapshots/Delete${suffix}`, { ...place, snapshot_name: name }));
    assert.deepEqual([again.code, again.details], [NOT_FOUND, `Not found: Snapshot ${name} not found`]);
    const climbing = await failure(client.call(`Snapshots/Delete${suffix}`, { ...place, snapshot_name: '../a.snapshot' }));
    assert.deepEqual([climbing.code, climbing.details], [NOT_FOUND, 'Not found: Snapshot ../a.snapshot not found']);
  });
}

test('a snapshot without a checksum has none in its message, and a collection that is not there is told', async (context) => {
  const { client, harness } = await opened(context);
  const place = { kind: 'collection', collection: 'c' } as const;
  harness.node.snapshots.keepMade(place, 'a.snapshot', { size: 2 ** 40, checksum: null }, () => assert.fail('it is not read'));
  const { snapshot_descriptions } = await client.call('Snapshots/List', IN_C);
  assert.deepEqual(snapshot_descriptions, [{ name: 'a.snapshot', creation_time: CREATED, size: String(2 ** 40) }]);
  for (const method of ['List', 'Create', 'Delete']) {
    const { code } = await failure(client.call(`Snapshots/${method}`, { collection_name: 'no', snapshot_name: 'a.snapshot' }));
    assert.equal(code, NOT_FOUND, method);
  }
});

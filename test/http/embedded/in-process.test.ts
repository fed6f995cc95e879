import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callOperation } from '../../../http/embedded/in-process.js';
import { openDoor } from '../rest/fake-node.js';

test('callers in the same process make, list, delete and restore snapshots', async (t) => {
  const { door, node, services } = await openDoor();
  t.after(() => door.close(0));
  await node.createCollection('c', {} as never);
  const path = { collection_name: 'c' };
  const made = await callOperation(services, 'create_snapshot', { path });
  assert.deepEqual([made.name, made.size], ['made-1.snapshot', 9]);
  assert.deepEqual(await callOperation(services, 'list_snapshots', { path }), [made]);
  assert.equal(await callOperation(services, 'delete_snapshot', { path: { ...path, snapshot_name: made.name } }), true);
  assert.deepEqual(await callOperation(services, 'list_snapshots', { path }), []);
  const body = { location: 'file:///a.snapshot', priority: 'snapshot' } as const;
  assert.equal(await callOperation(services, 'recover_from_snapshot', { path, body }), true);
  assert.deepEqual(
    node.snapshots.restored.map(({ from, options: { priority } }) => [from, priority]),
    [['file:///a.snapshot', 'snapshot']],
  );
});

test('archives pass no caller in the same process as streams: it has files', async (t) => {
  const { door, node, services } = await openDoor();
  t.after(() => door.close(0));
  await node.createCollection('c', {} as never);
  const path = { collection_name: 'c', snapshot_name: 'a.snapshot' };
  await assert.rejects(callOperation(services, 'get_snapshot', { path }), { code: 'unsupported' });
  await assert.rejects(callOperation(services, 'recover_from_uploaded_snapshot', { path }), { code: 'unsupported' });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { schema } from '../../../protocols/grpc/schema.js';
import { nodeFor, temporaryFolder } from '../../process/support.js';
import { bytesOf, messages, root } from '../../protocols/grpc/protos.js';
import { seeded } from '../../query/property.js';
import { GrpcClient } from './client.js';

/** Statuses that say that the node is at fault. */
const FAULTS = [2, 13, 15];
const MESSAGES = 1500;

test('no message makes the node fail: random ones to every method, whole and damaged', async (context) => {
  const node = await nodeFor(context, { folder: await temporaryFolder(context) });
  const client = new GrpcClient(node.grpcPort);
  context.after(() => client.close());
  const map = { a: { size: 2, distance: 'Dot' }, é: { size: 1, distance: 'Cosine', multivector_config: {} } };
  const config = { vectors_config: { params_map: { map } }, sparse_vectors_config: { map: { b: {} } } };
  await client.call('Collections/Create', { collection_name: 'c', ...config });
  await client.call('Collections/UpdateAliases', { actions: [{ create_alias: { collection_name: 'c', alias_name: 'a' } }] });

  // Deleting it would leave nothing to ask about; settings of new collections are asked for under random names.
  const left = ['/qdrant.Collections/Delete', '/qdrant.Collections/UpdateAliases'];
  const methods = [...schema().methods.values()].filter(({ path }) => path.startsWith('/qdrant.') && !left.includes(path));
  const requests = fc.constantFrom(...methods).chain((method) => {
    const type = root.lookupType(`qdrant.${method.request.name}`);
    return fc.record({
      path: fc.constant(method.path),
      bytes: messages(type).map((message) => {
        const named = type.fields.collection_name === undefined ? message : { ...message, collection_name: 'c' };
        return Buffer.from(bytesOf(method.request.name, { ...named, ...(type.fields.timeout === undefined ? {} : { timeout: 10 }) }));
      }),
      damage: fc.option(fc.tuple(fc.nat(), fc.nat(255)), { freq: 3 }),
    });
  });
  const property = fc.asyncProperty(requests, async ({ path, bytes, damage }) => {
    if (damage !== null && bytes.length > 0) bytes[damage[0] % bytes.length] = damage[1];
    const failed = await client.raw(path, bytes).then(
      () => null,
      (error: { code: number; details: string }) => error,
    );
    assert.ok(failed === null || !FAULTS.includes(failed.code), `${path}: ${failed?.code} ${failed?.details}\n${bytes.toString('hex')}`);
  });
  await fc.assert(property, { ...seeded(MESSAGES), endOnFailure: true });
  assert.doesNotMatch(node.log(), /unexpected error/);
  assert.equal((await client.call('Collections/CollectionExists', { collection_name: 'c' })).time !== undefined, true);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '../../http/routes.js';
import { GRPC_METHOD_NAMES } from '../../protocols/grpc/method-names.js';
import { schema } from '../../protocols/grpc/schema.js';

/** The standard's own service, which every gRPC server may have. */
const HEALTH_CHECK = 'grpc.health.v1.Health/Check';

test('the list of gRPC methods is that of the .proto files', () => {
  const inProtos = [...schema().methods.keys()].map((path) => path.slice(1)).filter((name) => name !== HEALTH_CHECK);
  assert.deepEqual([...GRPC_METHOD_NAMES].sort(), inProtos.sort());
});

test('each method of gRPC belongs to exactly one operation', () => {
  assert.deepEqual(ROUTES.flatMap(({ grpc }) => grpc ?? []).sort(), [...GRPC_METHOD_NAMES].sort());
});

test('no two operations have one name, or one method and path', () => {
  for (const keyOf of [({ name }: { name: string }) => name, ({ method, path }: { method: string; path: string }) => `${method} ${path}`]) {
    const keys = ROUTES.map(keyOf);
    assert.deepEqual(
      keys.filter((key, at) => keys.indexOf(key) !== at),
      [],
    );
  }
});

test('a message of gRPC names what the path of REST has in braces', () => {
  for (const { grpc, path } of ROUTES) {
    if (grpc === null) continue;
    const fields = schema()
      .methods.get(`/${grpc}`)
      ?.request.fields.map(({ name }) => name);
    for (const [, name] of path.matchAll(/\{(\w+)\}/g)) assert.ok(fields?.includes(name as string), `${grpc} has no field ${name}`);
  }
});

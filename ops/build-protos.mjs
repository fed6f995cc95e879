/**
 * Turns the .proto files into what runs: `schema.json`, the tables of the codec, and `descriptors.bin`, the same files as a
 * FileDescriptorSet for clients that ask the server what it offers. Default folder: dist/protocols/grpc.
 */

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import descriptor from 'protobufjs/ext/descriptor/index.js';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const source = join(root, 'protocols/grpc/proto');
const outDir = resolve(process.argv[2] ?? join(root, 'dist/protocols/grpc'));

const tree = new protobuf.Root();
tree.resolvePath = (_origin, target) => (target.startsWith(source) ? target : join(source, target));
const files = readdirSync(source).filter((file) => file.endsWith('.proto'));
for (const file of files) tree.loadSync(join(source, file), { keepCase: true });
tree.resolveAll();

const schema = { messages: {}, enums: {}, methods: {} };
visit(tree);
mkdirSync(outDir, { recursive: true });
writeFileSync(join(outDir, 'schema.json'), JSON.stringify(schema));
writeFileSync(join(outDir, 'descriptors.bin'), descriptor.FileDescriptorSet.encode(tree.toDescriptor('proto3')).finish());

function visit(parent) {
  for (const child of parent.nestedArray ?? []) {
    const name = child.fullName.slice(1);
    if (child instanceof protobuf.Type) schema.messages[name] = child.fieldsArray.map(fieldOf);
    if (child instanceof protobuf.Enum) schema.enums[name] = child.values;
    if (child instanceof protobuf.Service) {
      for (const method of child.methodsArray) {
        schema.methods[`/${name}/${method.name}`] = [method.resolvedRequestType, method.resolvedResponseType].map((type) =>
          type.fullName.slice(1),
        );
      }
    }
    visit(child);
  }
}

/** See `FieldRow` in protocols/grpc/schema.ts. */
function fieldOf(field) {
  const { partOf, resolvedType: type } = field;
  const oneof = partOf !== null && !partOf.isProto3Optional ? partOf.name : undefined;
  return {
    number: field.id,
    name: field.name,
    kind: type === null ? field.type : type instanceof protobuf.Enum ? 'enum' : 'message',
    type: type === null ? undefined : type.fullName.slice(1),
    label: field.map ? 'map' : field.repeated ? 'repeated' : partOf === null ? 'plain' : 'optional',
    oneof,
  };
}

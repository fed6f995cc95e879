/** The project's .proto files as protobufjs reads them: the second opinion on the codec. */

import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import protobuf from 'protobufjs';

/** Above the built file that runs. */
const FOLDER = join(dirname(fileURLToPath(import.meta.url)), '../../../../protocols/grpc/proto');

export const root = loadRoot();

function loadRoot(): protobuf.Root {
  const tree = new protobuf.Root();
  tree.resolvePath = (_origin, target) => (target.startsWith(FOLDER) ? target : join(FOLDER, target));
  for (const file of readdirSync(FOLDER)) tree.loadSync(join(FOLDER, file), { keepCase: true });
  tree.resolveAll();
  return tree;
}

/** Bytes of a message, by its name without package. Enums by number or name, 64-bit integers as numbers or texts. */
export function bytesOf(name: string, message: object): Uint8Array {
  const type = root.lookupType(`qdrant.${name}`);
  return type.encode(type.fromObject(message)).finish();
}

/** A message's fields; 64-bit integers as texts, enums by name, those without presence filled with zeros. */
export function messageOf(name: string, bytes: Uint8Array): Record<string, unknown> {
  const type = root.lookupType(`qdrant.${name}`);
  return type.toObject(type.decode(bytes), { longs: String, enums: String, defaults: true }) as Record<string, unknown>;
}

export function isPlain(field: protobuf.Field): boolean {
  return field.partOf === null && !field.repeated && !field.map;
}

const DEPTH_MAX = 5;

/** Messages of a type, as `fromObject` takes them. */
export function messages(type: protobuf.Type, depth = 0): fc.Arbitrary<Record<string, unknown>> {
  const shown = type.fieldsArray.filter((field) => depth < DEPTH_MAX || !(field.resolvedType instanceof protobuf.Type));
  const inOneof = (field: protobuf.Field): string => field.partOf?.name ?? '';
  const oneofs = [...new Set(shown.map(inOneof))].filter((name) => name !== '');
  const singles = shown.filter((field) => inOneof(field) === '');
  const parts: fc.Arbitrary<Record<string, unknown>>[] = [
    ...singles.map((field) => maybe(field, depth)),
    ...oneofs.map((name) =>
      fc.oneof(fc.constant({}), ...shown.filter((field) => inOneof(field) === name).map((field) => given(field, depth))),
    ),
  ];
  if (parts.length === 0) return fc.constant({});
  return fc.tuple(...parts).map((made) => Object.assign({}, ...made) as Record<string, unknown>);
}

function maybe(field: protobuf.Field, depth: number): fc.Arbitrary<Record<string, unknown>> {
  return fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: given(field, depth) });
}

function given(field: protobuf.Field, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const one = fc.noShrink(values(field, depth));
  const value = field.map
    ? fc.dictionary(fc.constantFrom('a', 'b', 'with space', 'é'), one, { maxKeys: 2 })
    : field.repeated
      ? fc.array(one, { maxLength: 3 })
      : one;
  return value.map((made) => ({ [field.name]: made }));
}

function values(field: protobuf.Field, depth: number): fc.Arbitrary<unknown> {
  const { resolvedType: type } = field;
  if (type instanceof protobuf.Enum) return fc.constantFrom(...Object.values(type.values));
  if (type !== null) return messages(type, depth + 1);
  switch (field.type) {
    case 'float':
      return fc.float({ noNaN: true, noDefaultInfinity: true });
    case 'double':
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case 'uint64':
      return fc.oneof(fc.nat().map(String), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String));
    case 'int64':
      return fc.oneof(fc.integer().map(String), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String));
    case 'uint32':
      return fc.integer({ min: 0, max: 0xffff_ffff });
    case 'int32':
      return fc.integer();
    case 'bool':
      return fc.boolean();
    case 'string':
      return fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'grapheme', maxLength: 8 }));
    default:
      throw new Error(`no values of type ${field.type}`);
  }
}

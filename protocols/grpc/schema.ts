/** Messages, enums and methods of the gRPC contract, as the build reads them from the .proto files (`ops/build-protos.mjs`). */

import { readFileSync } from 'node:fs';

export type FieldKind = 'double' | 'float' | 'int64' | 'uint64' | 'uint32' | 'int32' | 'bool' | 'string' | 'enum' | 'message';

/** A field as the build writes it. */
interface FieldRow {
  readonly number: number;
  readonly name: string;
  readonly kind: FieldKind;
  /** Name of the enum or message. */
  readonly type?: string;
  /** plain: without presence, absent means zero. map: by text. */
  readonly label: 'plain' | 'optional' | 'repeated' | 'map';
  readonly oneof?: string;
}

export interface GrpcField {
  readonly number: number;
  readonly name: string;
  readonly kind: FieldKind;
  readonly label: FieldRow['label'];
  /** The message of a field of kind `message`, else null. */
  readonly message: MessageType | null;
  /** Name of the enum, '' for other kinds. */
  readonly enumName: string;
  /** Names of the other fields of its oneof. */
  readonly rivals: readonly string[];
}

export interface MessageType {
  /** Without the package: `PointsUpdateOperation.SetPayload`. */
  readonly name: string;
  readonly fields: readonly GrpcField[];
  /** By field number; undefined where there is none. */
  readonly byNumber: readonly (GrpcField | undefined)[];
  /** Fields that are zero when absent. */
  readonly plain: readonly GrpcField[];
}

export interface GrpcMethod {
  /** `/qdrant.Points/Upsert` */
  readonly path: string;
  readonly request: MessageType;
  readonly response: MessageType;
}

export interface GrpcSchema {
  /** By full name: `qdrant.PointId`. */
  message(fullName: string): MessageType;
  /** By path. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
}

interface SchemaFile {
  readonly messages: Readonly<Record<string, readonly FieldRow[]>>;
  readonly enums: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly methods: Readonly<Record<string, readonly [request: string, response: string]>>;
}

let loaded: GrpcSchema | null = null;

/** The schema; read from beside this file at the first call. */
export function schema(): GrpcSchema {
  loaded ??= build(JSON.parse(readFileSync(new URL('schema.json', import.meta.url), 'utf8')) as SchemaFile);
  return loaded;
}

/** All .proto files as the bytes of a FileDescriptorSet. */
export function descriptorSet(): Uint8Array {
  return readFileSync(new URL('descriptors.bin', import.meta.url));
}

function build(file: SchemaFile): GrpcSchema {
  const types = new Map<string, MessageType>();
  const message = (fullName: string): MessageType => {
    const known = types.get(fullName);
    if (known !== undefined) return known;
    const rows = file.messages[fullName];
    if (rows === undefined) throw new Error(`no message is called ${fullName}`);
    const fields: GrpcField[] = [];
    const byNumber: (GrpcField | undefined)[] = [];
    const plain: GrpcField[] = [];
    const type: MessageType = { name: shortName(fullName), fields, byNumber, plain };
    // Known before its fields: messages contain themselves.
    types.set(fullName, type);
    for (const row of rows) {
      const field = fieldOf(row, rows);
      fields.push(field);
      byNumber[row.number] = field;
      if (row.label === 'plain' && row.kind !== 'message') plain.push(field);
    }
    return type;
  };
  const fieldOf = (row: FieldRow, rows: readonly FieldRow[]): GrpcField => ({
    number: row.number,
    name: row.name,
    kind: row.kind,
    label: row.label,
    message: row.kind === 'message' ? message(row.type as string) : null,
    enumName: row.kind === 'enum' ? shortName(row.type as string) : '',
    rivals: row.oneof === undefined ? [] : rows.filter((other) => other.oneof === row.oneof && other !== row).map(({ name }) => name),
  });
  const methods = Object.entries(file.methods).map(([path, [request, response]]): [string, GrpcMethod] => [
    path,
    { path, request: message(request), response: message(response) },
  ]);
  return { message, methods: new Map(methods) };
}

function shortName(fullName: string): string {
  return fullName.replace(/^(qdrant|google\.protobuf|grpc\.health\.v1)\./, '');
}

/** The few gRPC messages that the benchmark sends, written by hand so that they owe nothing to the code under test. */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

/** `qdrant.UpsertPoints` with the unnamed vector and a payload of texts, integers and fractions. */
export function upsertMessage(
  collection: string,
  points: readonly {
    readonly id: number;
    readonly vector: Float32Array | readonly Float32Array[];
    readonly payload: Readonly<Record<string, string | number>>;
  }[],
): Buffer {
  return Buffer.concat([
    bytesField(1, Buffer.from(collection)),
    varintField(2, 1),
    ...points.map(({ id, vector, payload }) =>
      bytesField(
        3,
        Buffer.concat([
          bytesField(1, varintField(1, id)),
          ...Object.entries(payload).map(([key, value]) =>
            bytesField(3, Buffer.concat([bytesField(1, Buffer.from(key)), bytesField(2, valueMessage(value))])),
          ),
          // vectors: vector
          bytesField(4, bytesField(1, vectorMessage(vector))),
        ]),
      ),
    ),
  ]);
}

/** `qdrant.QueryPoints`: nearest to a dense vector. */
export function queryMessage(collection: string, vector: Float32Array, limit: number, ef: number): Buffer {
  return Buffer.concat([
    bytesField(1, Buffer.from(collection)),
    // query: nearest: dense: data
    bytesField(3, bytesField(1, bytesField(2, bytesField(1, floats(vector))))),
    bytesField(6, varintField(1, ef)),
    varintField(8, limit),
  ]);
}

/** A condition that a keyword of the payload is `value`, as the only one of a filter. */
function keywordFilter(key: string, value: string): Buffer {
  // must: field: key, match: keyword
  const match = bytesField(2, bytesField(1, Buffer.from(value)));
  return bytesField(2, bytesField(1, Buffer.concat([bytesField(1, Buffer.from(key)), match])));
}

/** `qdrant.GetPoints`, with payloads and perhaps vectors. */
export function getMessage(collection: string, ids: readonly number[], withVectors: boolean): Buffer {
  return Buffer.concat([
    bytesField(1, Buffer.from(collection)),
    ...ids.map((id) => bytesField(2, varintField(1, id))),
    bytesField(4, varintField(1, 1)),
    bytesField(5, varintField(1, withVectors ? 1 : 0)),
  ]);
}

/** `qdrant.CountPoints` of the points that have a keyword. */
export function countMessage(collection: string, key: string, value: string): Buffer {
  return Buffer.concat([bytesField(1, Buffer.from(collection)), bytesField(2, keywordFilter(key, value)), varintField(3, 1)]);
}

/** `qdrant.FacetCounts` of a keyword, the most frequent `limit` ones. */
export function facetMessage(collection: string, key: string, limit: number): Buffer {
  return Buffer.concat([bytesField(1, Buffer.from(collection)), bytesField(2, Buffer.from(key)), varintField(4, limit)]);
}

/** `qdrant.ScrollPoints` from a point on. */
export function scrollMessage(collection: string, offset: number, limit: number): Buffer {
  return Buffer.concat([bytesField(1, Buffer.from(collection)), bytesField(3, varintField(1, offset)), varintField(4, limit)]);
}

/** A message in the frame of a gRPC call: not compressed, length in four bytes. */
export function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function valueMessage(value: string | number): Buffer {
  if (typeof value === 'string') return bytesField(4, Buffer.from(value));
  if (Number.isInteger(value)) return varintField(3, value);
  const double = Buffer.alloc(8);
  double.writeDoubleLE(value);
  return Buffer.concat([varint((2 << 3) | FIXED64), double]);
}

/** dense: data; or multi_dense: vectors: data. */
function vectorMessage(vector: Float32Array | readonly Float32Array[]): Buffer {
  if (vector instanceof Float32Array) return bytesField(101, bytesField(1, floats(vector)));
  return bytesField(103, Buffer.concat(vector.map((token) => bytesField(1, bytesField(1, floats(token))))));
}

function floats(values: Float32Array): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}

function bytesField(field: number, value: Buffer): Buffer {
  return Buffer.concat([varint((field << 3) | BYTES), varint(value.length), value]);
}

function varintField(field: number, value: number): Buffer {
  return Buffer.concat([varint((field << 3) | VARINT), varint(value)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}

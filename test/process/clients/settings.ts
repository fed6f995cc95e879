/** Settings of collections and payload indexes of REST as messages of gRPC in the JSON form of Protocol Buffers, and back. */

import { type Json, type Members, mapOf, maybe, membersOf, sent, text, valueMap, word } from './values.js';

const QUERY_ENCODINGS: readonly (readonly [rest: string, grpc: string])[] = [
  ['default', 'Default'],
  ['binary', 'Binary'],
  ['scalar4bits', 'Scalar4Bits'],
  ['scalar8bits', 'Scalar8Bits'],
];

// ------------------------------------------------------------------ requests

/** Body of a creation or a change. */
export function settingsMessage({ vectors, sparse_vectors, quantization_config, metadata, timeout, ...members }: Members): {
  [key: string]: Json;
} {
  return sent({
    ...mapOf(members, (value) => value),
    sharding_method: maybe(members.sharding_method, word),
    optimizers_config: maybe(members.optimizers_config, optimizersMessage),
    strict_mode_config: maybe(members.strict_mode_config, strictMessage),
    quantization_config: maybe(quantization_config, quantizationMessage),
    vectors_config: maybe(vectors, vectorsMessage),
    sparse_vectors_config: maybe(sparse_vectors, (map: Members) => ({ map: mapOf(map, sparseMessage) })),
    metadata: maybe(metadata, valueMap),
    timeout,
  });
}

/** One vector's settings, or those of several by name; unnamed changes stand below the empty name in REST. */
function vectorsMessage(vectors: Members): Json {
  if (vectors[''] !== undefined) return { params: vectorMessage(vectors['']) };
  if (vectors.size !== undefined) return { params: vectorMessage(vectors as Json) };
  return { params_map: { map: mapOf(vectors, vectorMessage) } };
}

function vectorMessage(params: Json): Json {
  const { datatype, quantization_config, multivector_config, ...members } = params as Members;
  return sent({
    ...members,
    datatype: maybe(datatype, word),
    quantization_config: maybe(quantization_config, quantizationMessage),
    multivector_config: maybe(multivector_config, multivectorMessage),
  });
}

function multivectorMessage({ comparator }: Members): Json {
  return sent({ comparator: maybe(comparator, word) });
}

function sparseMessage(params: Json): Json {
  const { index, modifier } = params as Members;
  const indexMessage = ({ datatype, ...members }: Members) => sent({ ...members, datatype: maybe(datatype, word) });
  return sent({ index: maybe(index, indexMessage), modifier: maybe(modifier, word) });
}

function quantizationMessage(config: Json): Json {
  if (config === 'Disabled') return { disabled: {} };
  const { scalar, product, binary, turbo } = config as { [kind: string]: Members | undefined };
  if (scalar !== undefined) return { scalar: sent({ ...scalar, type: maybe(scalar.type, word) }) };
  if (turbo !== undefined) return { turboquant: sent({ ...turbo, bits: maybe(turbo.bits, word) }) };
  if (product !== undefined) return { product: sent(product) };
  const { encoding, query_encoding, ...members } = binary as Members;
  const setting = QUERY_ENCODINGS.find(([rest]) => rest === query_encoding)?.[1];
  return { binary: sent({ ...members, encoding: maybe(encoding, word), query_encoding: setting && { setting } }) };
}

function optimizersMessage({ max_optimization_threads, ...members }: Members): Json {
  const threads = (of: Json): Json => (typeof of === 'number' ? { value: of } : { setting: word(of) });
  return sent({ ...members, max_optimization_threads: maybe(max_optimization_threads, threads) });
}

function strictMessage({ multivector_config, sparse_config, ...members }: Members): Json {
  return sent({
    ...members,
    multivector_config: multivector_config && { multivector_config },
    sparse_config: sparse_config && { sparse_config },
  });
}

/** `PUT …/vectors/{vector_name}`. */
export function vectorNameMessage({ dense, sparse, ...members }: Members): { [key: string]: Json } {
  return sent({ ...members, dense_config: maybe(dense, vectorMessage), sparse_config: maybe(sparse, sparseNameMessage) });
}

function sparseNameMessage({ modifier, datatype }: Members): Json {
  return sent({ modifier: maybe(modifier, word), datatype: maybe(datatype, word) });
}

/** `PUT …/index`: the kind alone, or its parameters with it. */
export function fieldIndexMessage({ field_schema, ...members }: Members): { [key: string]: Json } {
  if (typeof field_schema === 'string') return sent({ ...members, field_type: `FieldType${word(field_schema)}` });
  return sent({ ...members, field_index_params: maybe(field_schema, indexParamsMessage) });
}

function indexParamsMessage({ type, tokenizer, stopwords, stemmer, ...members }: Members): Json {
  const language = ({ language: of }: Members): Json => ({ snowball: { language: of as Json } });
  const params = sent({
    ...members,
    tokenizer: maybe(tokenizer, word),
    stopwords: typeof stopwords === 'string' ? { languages: [stopwords] } : stopwords,
    stemmer: maybe(stemmer, language),
  });
  return { [`${type}_index_params`]: params };
}

// ------------------------------------------------------------------ answers

/** `CollectionInfo` as the result of `GET /collections/{collection_name}`. */
export function infoOf(message: Members): Json {
  const { status, optimizer_status, config, payload_schema, ...members } = message;
  const { ok, error } = optimizer_status as Members;
  return sent({
    ...numbersOf(members),
    status: text(status as Json),
    optimizer_status: ok === true ? 'ok' : { error: error as Json },
    config: configOf(config as Members),
    payload_schema: mapOf(payload_schema as Members, schemaOf),
  });
}

function configOf({ params, quantization_config, strict_mode_config, metadata, hnsw_config, optimizer_config, wal_config }: Members): Json {
  const { vectors_config, sparse_vectors_config, sharding_method, ...members } = params as Members;
  const { max_optimization_threads, ...optimizers } = optimizer_config as Members;
  const threads = max_optimization_threads as { value?: string; setting?: string } | undefined;
  return sent({
    params: sent({
      ...numbersOf(members),
      sharding_method: maybe(sharding_method, text),
      vectors: vectorsConfigOf(vectors_config as Members | undefined),
      sparse_vectors: maybe(sparse_vectors_config, ({ map }: { map: Members }) => mapOf(map, sparseOf)),
    }),
    hnsw_config: numbersOf(hnsw_config as Members),
    optimizer_config: numbersOf({ ...optimizers, max_optimization_threads: threads?.value ?? maybe(threads?.setting, text) }),
    wal_config: numbersOf(wal_config as Members),
    quantization_config: maybe(quantization_config, quantizationOf),
    strict_mode_config: maybe(strict_mode_config, strictOf),
    metadata: maybe(metadata, membersOf),
  });
}

function vectorsConfigOf(config: Members | undefined): Json {
  if (config === undefined) return {};
  const { params, params_map } = config as { params?: Json; params_map?: { map: Members } };
  return params === undefined ? mapOf(params_map?.map ?? {}, vectorOf) : vectorOf(params);
}

function vectorOf(params: Json): Json {
  const { datatype, hnsw_config, quantization_config, multivector_config, ...members } = params as Members;
  return sent({
    ...numbersOf(members),
    datatype: maybe(datatype, text),
    hnsw_config: maybe(hnsw_config, numbersOf),
    quantization_config: maybe(quantization_config, quantizationOf),
    multivector_config: maybe(multivector_config, ({ comparator }: Members) => ({ comparator: text(comparator as Json) })),
  });
}

function sparseOf(params: Json): Json {
  const { index, modifier } = params as Members;
  const indexOf = ({ datatype, ...members }: Members) => sent({ ...numbersOf(members), datatype: maybe(datatype, text) });
  return sent({ index: maybe(index, indexOf), modifier: maybe(modifier, text) });
}

function quantizationOf(config: Json): Json {
  const { scalar, product, binary, turboquant } = config as { [kind: string]: Members | undefined };
  if (scalar !== undefined) return { scalar: sent({ ...scalar, type: maybe(scalar.type, text) }) };
  if (turboquant !== undefined) return { turbo: sent({ ...turboquant, bits: maybe(turboquant.bits, text) }) };
  if (product !== undefined) return { product: sent(product) };
  const { encoding, query_encoding, ...members } = binary as Members;
  const setting = (query_encoding as Members | undefined)?.setting;
  const rest = QUERY_ENCODINGS.find(([, grpc]) => grpc === setting)?.[0];
  return { binary: sent({ ...members, encoding: maybe(encoding, text), query_encoding: rest }) };
}

function strictOf({ multivector_config, sparse_config, ...members }: Members): Json {
  const maxima = (map: Json | undefined) => map && mapOf(map as Members, (of) => numbersOf(of as Members));
  return sent({
    ...numbersOf(members),
    multivector_config: maxima((multivector_config as Members | undefined)?.multivector_config),
    sparse_config: maxima((sparse_config as Members | undefined)?.sparse_config),
  });
}

function schemaOf(message: Json): Json {
  const { data_type, params, points } = message as Members;
  return sent({ data_type: text(data_type as Json), points: maybe(points, Number), params: maybe(params, indexParamsOf) });
}

function indexParamsOf(message: Members): Json {
  const [[kind, params]] = Object.entries(message) as [[string, Members]];
  const { tokenizer, stemmer, ...members } = params;
  const language = ({ snowball }: Members): Json => ({ type: 'snowball', ...(snowball as { [key: string]: Json }) });
  return sent({
    ...numbersOf(members),
    type: kind.slice(0, kind.indexOf('_')),
    tokenizer: maybe(tokenizer, text),
    stemmer: maybe(stemmer, language),
  });
}

/** Integers of 64 bits are texts in the JSON form of Protocol Buffers. */
export function numbersOf(members: Members): { [key: string]: Json } {
  return mapOf(members, numberOf);
}

function numberOf(value: Json): Json {
  if (typeof value === 'string' && /^-?\d+$/.test(value)) return Number(value);
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'object' ? numberOf(item) : item));
  if (typeof value === 'object' && value !== null) return numbersOf(value as Members);
  return value;
}

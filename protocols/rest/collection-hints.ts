/** What of a collection's settings is kept and shown, but has no effect, or another one than their names say: for `GET /collections/{name}` and the log. */

import {
  type CollectionConfig,
  listedVector,
  type SparseVectorParams,
  sparseByName,
  type VectorParams,
  vectorsByName,
} from '../model/collection.js';

/** One sentence for each such setting. Source of those about `inline_storage`: scenario vectors-config-more. */
export function settingsWithoutEffect(config: CollectionConfig): string[] {
  const { params, wal_config: wal } = config;
  const lines: string[] = [];
  for (const [name, vector] of vectorsByName(params.vectors)) lines.push(...ofVector(config, name, vector));
  for (const [name, vector] of sparseByName(params)) lines.push(...ofSparseVector(name, vector));
  if (wal.wal_segments_ahead > 0) {
    lines.push('The `wal_config.wal_segments_ahead` option has no effect: files of the log are made when they are needed.');
  }
  return lines;
}

function ofVector(config: CollectionConfig, name: string, vector: VectorParams): string[] {
  const isMulti = vector.multivector_config !== undefined;
  const isQuantized = (vector.quantization_config ?? config.quantization_config) !== null;
  const hnsw = { ...config.hnsw_config, ...vector.hnsw_config };
  const inline = `The \`hnsw_config.inline_storage\` option for vector '${name}'`;
  if (hnsw.inline_storage === true && (isMulti || !isQuantized)) {
    return [
      isMulti
        ? `${inline} is not compatible with multivectors. This option will be ignored.`
        : `${inline} requires quantization to be enabled. This option will be ignored.`,
    ];
  }
  const listed = listedVector(config);
  const checks: readonly (readonly [boolean, string])[] = [
    [hnsw.inline_storage === true, `${inline} has no effect: graphs and codes are in memory.`],
    [
      hnsw.on_disk === true && listed !== name,
      `The \`hnsw_config.on_disk\` option for vector '${name}' has no effect: ${whyInMemory(listed, vector)}.`,
    ],
    [isMulti && vector.on_disk === true, `The \`on_disk\` option for vector '${name}' has no effect: multivectors are in memory.`],
    [
      vector.datatype === 'turbo4',
      `The \`turbo4\` datatype of vector '${name}' is kept as \`float16\`: its scores are more exact, and it takes more memory.`,
    ],
  ];
  return checks.filter(([on]) => on).map(([, line]) => line);
}

function whyInMemory(listed: string | null, { datatype, multivector_config, on_disk }: VectorParams): string {
  if (multivector_config !== undefined || datatype === 'uint8') return 'graphs are in memory';
  if (listed !== null) return `only vector '${listed}' is searched from disk, since rows can lie in one order only`;
  return on_disk === true ? 'graphs are in memory' : 'graphs are in memory unless `on_disk` is set, too';
}

function ofSparseVector(name: string, { index }: SparseVectorParams): string[] {
  const checks: readonly (readonly [boolean, string])[] = [
    [index?.on_disk === true, `The \`index.on_disk\` option for sparse vector '${name}' has no effect: inverted indexes are in memory.`],
    [
      (index?.datatype ?? 'float32') !== 'float32',
      `The \`index.datatype\` option for sparse vector '${name}' has no effect: values are kept and scored as \`float32\`.`,
    ],
  ];
  return checks.filter(([on]) => on).map(([, line]) => line);
}

/** Limits of a collection in strict mode on updates. Source: specification, strict mode; contract, scenarios strict-storage and strict-filters. */

import type { StrictModeConfig } from '../../protocols/model/collection.js';
import type { RequestLimits, StoredFigures } from '../../protocols/model/limits.js';
import { type BatchColumn, TAKES_ROOM, type UpdateOperation } from '../../protocols/model/update.js';
import { checkFilter } from './check-filter.js';
import { checkLongest, overLimit } from './exceeded.js';

/** A decoded update, as far as limits concern it. */
export interface LimitedUpdate {
  readonly operations: readonly UpdateOperation[];
  /** Bytes of the points of its largest upsert, as they were sent; 0 if it has none. */
  readonly upsertBytes: number;
  /** As the client has given it. */
  readonly timeoutSeconds: number | undefined;
}

/** Errors: `badRequest` for the first limit that an operation goes beyond; nothing of the request is to be carried out then. */
export function checkUpdateLimits({ operations, timeoutSeconds, upsertBytes }: LimitedUpdate, limits: RequestLimits): void {
  const { stored, strict } = limits;
  checkLongest(timeoutSeconds, strict);
  const bytesMax = strict.upsert_max_batchsize;
  if (bytesMax !== undefined && upsertBytes > bytesMax) {
    const help = `Split the points over several requests of at most ${bytesMax} bytes each.`;
    throw overLimit('upsert_max_batchsize', `Limit exceeded ${upsertBytes} > ${bytesMax} bytes for "upsert batch size". Help: ${help}`);
  }
  for (const operation of operations) checkOperation(operation, limits);
  if (stored === undefined) return;
  for (const operation of operations) checkStored(operation, stored, limits);
}

function checkOperation(operation: UpdateOperation, limits: RequestLimits): void {
  const { strict } = limits;
  if ('selector' in operation && operation.selector.kind === 'filter')
    checkFilter(operation.selector.filter, limits, 'unindexed_filtering_update');
  // Points are found by their ids: the condition needs no index (contract, scenario strict-filters).
  if ('batch' in operation) {
    checkFilter(operation.filter ?? null, limits, null);
    for (const column of operation.batch.vectors) checkColumn(column, strict);
  }
  const max = strict.max_payload_index_count;
  if (operation.kind === 'createFieldIndex' && max !== undefined && (limits.indexes?.size ?? 0) >= max) {
    const help = 'Please delete an existing index before creating a new one.';
    throw overLimit('max_payload_index_count', `Collection already has the maximum number of payload indices (${max}). Help: ${help}`);
  }
}

function checkColumn(column: BatchColumn, strict: StrictModeConfig): void {
  if (column.kind === 'dense') return;
  const { name } = column;
  const largest = column.counts.reduce((most, count) => Math.max(most, count), 0);
  if (column.kind === 'multi') {
    const max = ofVector(strict.multivector_config, name)?.max_vectors;
    if (max !== undefined && largest > max)
      throw overLimit('multivector_config', `Multivector '${name}' has a limit of ${max} vectors, but ${largest} were provided!`);
    return;
  }
  const max = ofVector(strict.sparse_config, name)?.max_length;
  if (max !== undefined && largest > max)
    throw overLimit('sparse_config', `Sparse vector '${name}' has a limit of ${max} indices, but ${largest} were provided!`);
}

function ofVector<Limit>(limits: { readonly [name: string]: Limit } | undefined, name: string): Limit | undefined {
  return limits !== undefined && Object.hasOwn(limits, name) ? limits[name] : undefined;
}

/** Whoever is at a limit may still take points and values away. */
function checkStored(operation: UpdateOperation, stored: StoredFigures, { strict }: RequestLimits): void {
  const { kind } = operation;
  if (!TAKES_ROOM[kind]) return;
  const addsPoints = kind === 'upsert' && operation.mode !== 'updateOnly';
  const pointsMax = strict.max_points_count;
  if (addsPoints && pointsMax !== undefined && stored.points >= pointsMax)
    throw overLimit('max_points_count', `Max points count limit of ${pointsMax} reached!`);
  const hasVectors = kind === 'upsert' || kind === 'updateVectors';
  const vectorBytesMax = strict.max_collection_vector_size_bytes;
  if (hasVectors && vectorBytesMax !== undefined && stored.vectorBytes >= vectorBytesMax)
    throw overLimit('max_collection_vector_size_bytes', `Max vector storage size limit of ${megabytes(vectorBytesMax)}MB reached!`);
  const hasPayload = kind === 'upsert' || kind === 'setPayload' || kind === 'overwritePayload';
  const payloadBytesMax = strict.max_collection_payload_size_bytes;
  if (hasPayload && payloadBytesMax !== undefined && stored.payloadBytes >= payloadBytesMax)
    throw overLimit('max_collection_payload_size_bytes', `Max payload storage size limit of ${megabytes(payloadBytesMax)}MB reached!`);
  checkPercent('max_resident_memory_percent', 'memory', stored.memoryPercent, strict);
  checkPercent('max_disk_usage_percent', 'disk', stored.diskPercent, strict);
}

function checkPercent(
  limit: 'max_resident_memory_percent' | 'max_disk_usage_percent',
  what: string,
  used: number | null,
  strict: StrictModeConfig,
): void {
  const max = strict[limit];
  if (max === undefined || used === null || used < max) return;
  const help = `Delete points or collections, or give the node more ${what}.`;
  throw overLimit(limit, `Max ${what} usage limit of ${max}% reached: this node uses ${used.toFixed(1)}%. Help: ${help}`);
}

/** As a float32 is printed: the shortest digits that name it. */
function megabytes(bytes: number): string {
  const value = Math.fround(bytes / (1 << 20));
  if (value === 0) return '0';
  for (let digits = 1; ; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) !== value) continue;
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(value)));
    return Number(text).toFixed(Math.min(100, places));
  }
}

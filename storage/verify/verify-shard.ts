/**
 * Looks through all files of a shard that nobody has open: what opening it would check, and besides every vector, payload and logged operation.
 * Changes nothing but LMDB's lock file. What can be made anew by a start is told as such.
 */

import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { rethrowBroken } from '../../protocols/invariant.js';
import { parseStored } from '../../protocols/json.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { hasBit } from '../../query/filter/bits.js';
import { AppendFolder } from '../disk/append-file.js';
import { initChecksum } from '../disk/checksum.js';
import { checkFormat, isMarkedMade } from '../disk/format-marker.js';
import { Environment } from '../disk/lmdb.js';
import { hasNewestIndexes, READABLE_FORMATS } from '../replica/formats.js';
import { type LoadedReplica, loadReplica } from '../replica/load.js';
import { PayloadReader } from '../replica/payload-records.js';
import type { SegmentRows } from '../replica/segment-rows.js';
import type { VectorLayout } from '../segment/layout.js';
import { closeSegmentFiles, readPayloadText } from '../segment/payload-file.js';
import { itemOffsets } from '../segment/ragged.js';
import { WriteAheadLog } from '../wal/wal.js';
import { verifyReplicas } from './verify-lmdb.js';

export interface ShardReport {
  /** Points that are live, as far as they could be read. */
  readonly points: number;
  /** What is wrong, a sentence each; none: the shard is sound. */
  readonly problems: readonly string[];
}

/** Of each vector and segment so many points are named; the others are counted. */
const NAMED_MAX = 10;
/** Exponents of all ones: infinite, or no number. */
const F32_EXPONENT = 0x7f80_0000;
const F16_EXPONENT = 0x7c00;

/** folder: the shard's. Errors: none; what keeps it from being read is a problem. */
export async function verifyShard(folder: string, config: CollectionConfig): Promise<ShardReport> {
  const problems: string[] = [];
  let points = 0;
  try {
    await initChecksum();
    if (!isMarkedMade(folder)) return { points, problems: [`${folder} was never made to the end: a start makes it anew`] };
    const damaged = (await verifyReplicas([folder])).get(folder) ?? null;
    if (damaged !== null) return { points, problems: [damaged] };
    points = await readShard(folder, config, (problem) => problems.push(problem));
  } catch (error) {
    rethrowBroken(error);
    problems.push(error instanceof TroupeError ? error.detail : String(error));
  }
  return { points, problems };
}

async function readShard(folder: string, config: CollectionConfig, tell: (problem: string) => void): Promise<number> {
  const format = checkFormat(folder, ...READABLE_FORMATS);
  const environment = Environment.open(path.join(folder, 'lmdb'), () => {
    throw new Error(`${folder}/lmdb/data.mdb is empty`);
  });
  try {
    const spec = { key: path.basename(folder), folder, config, readers: 1 };
    const isAnew = (problem: string): void => tell(`${problem}, by the next start`);
    const rows = AppendFolder.forReading(path.join(folder, 'rows'));
    const loaded = await loadReplica(environment, rows, spec, hasNewestIndexes(format), { warn: isAnew, pause: async () => {} });
    try {
      readLog(environment, folder, loaded, tell);
      return readPoints(environment, loaded, tell);
    } finally {
      for (const segment of loaded.shape.segments) if (!segment.isAppendable) closeSegmentFiles(segment.handle);
    }
  } finally {
    await environment.close();
  }
}

/** Every live row: its payload is JSON, its vectors are finite. Returns how many there are. */
function readPoints(environment: Environment, { shape }: LoadedReplica, tell: (problem: string) => void): number {
  let points = 0;
  const payloads = new PayloadReader(environment);
  for (const segment of shape.segments) {
    const infinite = new Map<string, PointId[]>();
    const vectors = segment.layout.vectors.map((vector) => ({ name: vector.name, areFinite: finiteRows(segment, vector) }));
    for (let row = 0; row < segment.rows; row++) {
      if (!segment.isLive(row)) continue;
      if (segment.counts(row)) points++;
      const payload = segment.isAppendable ? payloads.text(segment.handle, row) : readPayloadText(segment.handle, row);
      if (payload.length > 0) parseStored(payload);
      for (const { areFinite, name } of vectors) {
        if (areFinite(row)) continue;
        const ids = infinite.get(name) ?? [];
        infinite.set(name, ids);
        ids.push(segment.idAt(row));
      }
    }
    for (const [name, ids] of infinite) tell(infiniteVectors(segment.id, name, ids));
  }
  return points;
}

function infiniteVectors(segment: number, name: string, ids: readonly PointId[]): string {
  const named = ids.slice(0, NAMED_MAX).join(', ') + (ids.length > NAMED_MAX ? ` and ${ids.length - NAMED_MAX} more` : '');
  const vector = name === '' ? 'the vector' : `the vector \`${name}\``;
  return `segment ${segment}: ${vector} of ${ids.length} points has components that are no finite numbers: write these points again, or delete them: ${named}`;
}

/** Says of a row whether all components are finite that it has of the vector. The originals are in memory. */
function finiteRows(segment: SegmentRows, vector: VectorLayout): (row: number) => boolean {
  const { memory } = segment.handle;
  const { buffer } = memory;
  const presence = new Uint32Array(buffer, vector.presence, Math.ceil(segment.layout.capacity / 32));
  // What codes stand for is finite.
  if (vector.element === 'u8' || vector.decoded) return () => true;
  const isHalf = vector.element === 'f16' && vector.kind !== 'sparse';
  const offsets = vector.ragged === null ? null : itemOffsets(memory, vector, segment.rows);
  // Components of sparse vectors lie behind each other, without their indices.
  const [start, stride] = vector.kind === 'sparse' ? [vector.ragged?.values ?? 0, 4] : [vector.offset ?? 0, vector.stride];
  const exponent = isHalf ? F16_EXPONENT : F32_EXPONENT;
  return (row) => {
    if (!hasBit(presence, row)) return true;
    const from = start + (offsets === null ? row : (offsets[row] as number)) * stride;
    const to = start + (offsets === null ? row + 1 : (offsets[row + 1] as number)) * stride;
    const bits = isHalf ? new Uint16Array(buffer, from, (to - from) / 2) : new Uint32Array(buffer, from, (to - from) / 4);
    for (const one of bits) if ((one & exponent) === exponent) return false;
    return true;
  };
}

/** Every operation of the log can be read. Errors: `storage` if one is damaged. */
function readLog(environment: Environment, folder: string, { shape }: LoadedReplica, tell: (problem: string) => void): void {
  const wal = new WriteAheadLog(environment, AppendFolder.forReading(path.join(folder, 'wal')), shape.appliedOperation, tell);
  for (const { operation } of wal.after(0)) void operation;
}

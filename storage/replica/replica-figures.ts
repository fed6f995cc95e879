/** The figures of a replica's points and segments, of which optimizers and telemetry make their pictures. */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { VectorLayout } from '../segment/layout.js';
import { diskBytesOf, memoryBytesOf } from '../segment/segment-bytes.js';
import type { GraphStats, ReplicaStats, SegmentStats } from '../threads/messages.js';
import { deferralBytes } from './deferral.js';
import type { Manifest, ManifestField } from './manifest.js';
import type { SegmentRows } from './segment-rows.js';
import { fieldsOf } from './transaction.js';

/** The part of `ReplicaStats` that follows from the segments. */
export type PointFigures = Pick<
  ReplicaStats,
  'points' | 'deferredPoints' | 'deferredFrom' | 'defers' | 'segments' | 'fields' | 'fieldPoints'
>;

export function pointFigures(segments: readonly SegmentRows[], manifest: Manifest, config: CollectionConfig): PointFigures {
  const { fields } = manifest;
  const shown = segments.filter((segment) => !segment.deferred);
  const fieldPoints = fields.map(({ name }): [string, number] => [
    name,
    shown.reduce((sum, segment) => sum + (segment.indexed.get(name)?.count ?? 0), 0),
  ]);
  return {
    points: sumLive(shown),
    deferredPoints: deferredPoints(segments),
    ...deferredSince(segments),
    defers: deferralBytes(config) !== Number.POSITIVE_INFINITY,
    segments: segments.map((segment) => segmentStats(segment, fields)),
    fields: fieldsOf(manifest),
    fieldPoints: new Map(fieldPoints),
  };
}

/** Number of points whose newest row readers do not see yet. */
export function deferredPoints(segments: readonly SegmentRows[]): number {
  return sumLive(segments.filter((segment) => segment.deferred));
}

function deferredSince(segments: readonly SegmentRows[]): Pick<ReplicaStats, 'deferredFrom'> {
  const froms = segments.filter(({ deferred, live }) => deferred && live > 0).map(({ deferredFrom }) => deferredFrom);
  return froms.length === 0 ? {} : { deferredFrom: Math.min(...froms) };
}

function sumLive(segments: readonly SegmentRows[]): number {
  return segments.reduce((sum, segment) => sum + segment.live, 0);
}

function segmentStats(segment: SegmentRows, fields: readonly ManifestField[]): SegmentStats {
  const { handle, isAppendable, rows, live, damagedFiles } = segment;
  const vectors = handle.layout.vectors;
  const graphs = vectors.flatMap(graphStats);
  const listed = vectors.filter(({ tokenLists }) => tokenLists !== null);
  return {
    id: handle.id,
    kind: handle.kind,
    rows,
    deleted: segment.deleted,
    vectorBytes: segment.vectorBytes,
    payloadBytes: segment.payloadBytes,
    diskBytes: diskBytesOf(handle),
    memoryBytes: memoryBytesOf(handle, rows),
    frozen: segment.room === 0,
    deferred: segment.deferred,
    building: segment.building,
    graphs,
    quantized: vectors.flatMap(({ name, quantization }) =>
      quantization === null ? [] : [{ name, setting: JSON.stringify(quantization) }],
    ),
    indexedVectors: live * (graphs.length + listed.length + handle.sparseIndexes.length),
    fieldRows: fields.map(({ name }) => segment.indexed.get(name)?.count ?? 0),
    missingFields: isAppendable
      ? []
      : fields.filter(({ name }) => !handle.fieldIndexes.some((index) => index.field === name)).map(({ name }) => name),
    damagedFiles,
  };
}

function graphStats({ name, graph, lists, subgraphs }: VectorLayout): GraphStats[] {
  if (lists !== null) return [{ name, m: 0, efConstruct: 0, inLists: true }];
  if (graph === null && subgraphs === null) return [];
  const made = subgraphs === null ? {} : { subgraphs: subgraphs.setting };
  return [{ name, m: graph?.m ?? 0, efConstruct: graph?.efConstruct ?? subgraphs?.setting.efConstruct ?? 0, ...made }];
}

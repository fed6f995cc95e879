/**
 * Segments that a builder makes of others: its sources are frozen while it works in another thread, and what it has made takes their place with all
 * deletions made meanwhile.
 */

import { TroupeError } from '../../protocols/errors.js';
import { sameSchema } from '../../protocols/model/collection.js';
import type { FieldIndexHandle, SegmentHandle } from '../segment/handle.js';
import { vectorPlans } from '../segment/plans.js';
import type { BuildResult, BuildSources, BuiltSegment, ReplicaSpec } from '../threads/messages.js';
import { carryingDeletions, settleDeferred } from './deferral.js';
import { trackSealedFields } from './load.js';
import type { ManifestField } from './manifest.js';
import type { Pause } from './operations.js';
import { placePayloads } from './place-payloads.js';
import { type RetiredSegments, removeSealed } from './retired-segments.js';
import { SegmentRows } from './segment-rows.js';
import type { IsOver } from './slices.js';
import { fieldsOf, type ReplicaShape, type Transaction } from './transaction.js';
import type { Unfinished } from './unfinished.js';

export interface BuildsHost {
  readonly spec: ReplicaSpec;
  readonly shape: ReplicaShape;
  readonly openCommit: number;
  readonly unfinished: Unfinished | null;
  readonly retiring: RetiredSegments;
  /** A new segment's id. */
  nextSegment(): number;
  transact<T>(change: (transaction: Transaction) => T): T;
  beginPortion(): IsOver;
}

export class Builds {
  constructor(private readonly host: BuildsHost) {}

  /**
   * Freezes segments as the sources of a build. results: segments to make. Errors: `conflict` if one of them does not exist or is a source
   * already.
   */
  begin(ids: readonly number[], results = 1): BuildSources {
    this.mustBeWhole();
    const sources = ids.map((id) => this.segment(id));
    for (const source of sources)
      if (source.building) throw new TroupeError('conflict', `segment ${source.id} is the source of another build`);
    for (const source of sources) source.beginBuild();
    return {
      spec: this.host.spec,
      openCommit: this.host.openCommit,
      seq: this.host.shape.commit - this.host.openCommit,
      rows: sources.map((source) => source.rows),
      sources: sources.map((source) => source.handle),
      fields: fieldsOf(this.host.shape.manifest),
      segmentIds: Array.from({ length: results }, () => this.host.nextSegment()),
    };
  }

  /**
   * Replaces the sources of a build by what it has made, with all deletions made meanwhile: one transaction, which is prepared with pauses. Whoever
   * runs this may do other work at each pause, but nothing that changes the replica.
   */
  *publishing(result: BuildResult): Generator<Pause, void> {
    try {
      this.mustBeWhole();
      const sources = result.sources.map((id) => this.segment(id));
      if (result.plan === 'fieldIndex') this.replaceHandle(sources[0] as SegmentRows, (result.built[0] as BuiltSegment).handle);
      else this.replaceSources(sources, yield* this.preparing(sources, result));
      for (const source of sources) source.building = false;
    } catch (error) {
      this.abandon(result.sources);
      if (result.plan === 'segment') for (const { handle } of result.built) removeSealed(handle);
      throw error;
    }
  }

  /** An operation whose slices cannot be applied now goes on in the segments in which it began (Slice-S4). Errors: `conflict`. */
  private mustBeWhole(): void {
    const { unfinished } = this.host;
    if (unfinished !== null) throw new TroupeError('conflict', `operation ${unfinished.operation} is applied in part`);
  }

  /** Ends a build without result: its sources take rows again if they have room. */
  abandon(ids: readonly number[]): void {
    for (const segment of this.host.shape.segments) {
      if (!ids.includes(segment.id)) continue;
      segment.building = false;
      segment.frozen = !segment.isAppendable;
    }
  }

  private replaceHandle(segment: SegmentRows, handle: SegmentHandle): void {
    const { fields } = this.host.shape.manifest;
    const current = segment.handle;
    const currentDamage = segment.damagedFiles;
    const wanted = wantedIndexes(handle, fields);
    this.host.transact((transaction) => {
      segment.handle = { ...current, fieldIndexes: wanted };
      transaction.onUndo(() => {
        segment.handle = current;
      });
      transaction.reshape(transaction.segments);
    });
    segment.damagedFiles = currentDamage.filter((file) => !file.startsWith('index.'));
    trackSealedFields(segment, fields);
  }

  /** The segments that a build has made, as they are to be published. Nobody sees them yet. */
  private *preparing(sources: readonly SegmentRows[], { built, seq }: BuildResult): Generator<Pause, SegmentRows[]> {
    const { fields } = this.host.shape.manifest;
    const staying = this.host.shape.segments.filter((segment) => !sources.includes(segment));
    const prepared: SegmentRows[] = [];
    for (const { handle, rowMaps } of built) {
      const segment = this.builtRows(handle, sources);
      for (const [at, source] of sources.entries()) {
        const rowMap = new Uint32Array(rowMaps[at] as SharedArrayBuffer);
        yield* carryingDeletions(source, rowMap, seq, segment, staying, () => this.host.beginPortion());
        yield null;
      }
      if (segment.rows > 0) trackSealedFields(segment, fields);
      prepared.push(segment);
    }
    return prepared;
  }

  private replaceSources(sources: readonly SegmentRows[], prepared: readonly SegmentRows[]): void {
    this.host.transact((transaction) => {
      transaction.removeSegments(sources.map((source) => source.id));
      for (const built of prepared) {
        if (built.rows === 0) continue;
        transaction.addSegment(built);
        transaction.storeDeletions(built);
      }
      settleDeferred(transaction, this.host.spec.config);
    });
    this.host.retiring.add(
      this.host.shape.generation,
      sources.map((source) => source.handle),
    );
    for (const built of prepared) if (built.rows === 0) removeSealed(built.handle);
  }

  private builtRows(handle: SegmentHandle, sources: readonly SegmentRows[]): SegmentRows {
    const built = new SegmentRows({ ...handle, fieldIndexes: wantedIndexes(handle, this.host.shape.manifest.fields) }, handle.rows);
    for (const source of sources) built.dropVectors(source.droppedSinceBuild);
    // The configuration may have changed during the build.
    placePayloads(built, this.host.spec.config);
    // A vector may have been added and dropped while no source had it.
    built.keepVectors(vectorPlans(this.host.spec.config.params));
    return built;
  }

  private segment(id: number): SegmentRows {
    const segment = this.host.shape.segments.find((known) => known.id === id);
    if (segment === undefined) throw new TroupeError('conflict', `there is no segment ${id}`);
    return segment;
  }
}

/** Indexes of a built segment whose fields still have the schema that they were built with. */
function wantedIndexes(handle: SegmentHandle, fields: readonly ManifestField[]): FieldIndexHandle[] {
  return handle.fieldIndexes.filter((index) => fields.some((field) => field.name === index.field && sameSchema(field.schema, index)));
}

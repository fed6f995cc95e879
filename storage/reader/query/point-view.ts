/** What an answer shows of a row: payload and vectors as the request selects them. */

import { parseStored, stringifyJson } from '../../../protocols/json.js';
import { type CollectionConfig, DEFAULT_VECTOR, sparseByName, type VectorParams } from '../../../protocols/model/collection.js';
import type { PayloadSelector, VectorSelector } from '../../../protocols/model/filter.js';
import type { Payload } from '../../../protocols/model/payload.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import type { Work } from '../../../query/effort.js';
import { payloadSelect } from '../../../query/payload-edit.js';
import type { PointView, VectorView } from '../../answers/result.js';
import { recordView } from '../../walk/shown.js';
import { selectedNames } from '../../walk/space.js';
import type { ShownPoint } from '../../walk/walk.js';
import type { SegmentView } from '../snapshot/snapshot-view.js';

/** Shows rows of one collection as one request asks. */
export class PointViews {
  /** Names of the vectors to show; null: none, and no `vector` either. */
  private readonly names: readonly string[] | null;
  /** Of the vectors of a row, about. */
  private readonly numbers: number;

  /** Errors: `wrongInput` for a vector name the collection does not have. */
  constructor(
    config: CollectionConfig,
    vectors: ReadonlyMap<string, VectorParams>,
    private readonly withPayload: PayloadSelector,
    withVector: VectorSelector,
  ) {
    const names = selectedNames([...vectors.keys(), ...sparseByName(config.params).keys()], withVector);
    this.names = names;
    this.numbers = names === null ? 0 : names.reduce((sum, name) => sum + (vectors.get(name)?.size ?? SPARSE_NUMBERS), 0);
  }

  /** What it takes to show so many rows. */
  work(points: number): Work {
    return { kind: 'show', points, numbers: this.numbers };
  }

  /** What so many rows take until they are printed, about; what is larger than most is held as it is read. A payload is a copy of its text. */
  bytes(points: number): number {
    const vectors = this.names === null ? 0 : this.names.length * VECTOR_BYTES + this.numbers * NUMBER_BYTES;
    return points * (POINT_BYTES + (this.withPayload.kind === 'none' ? 0 : PAYLOAD_BYTES) + vectors);
  }

  /** The row without score or version. */
  record(view: SegmentView, row: number): PointView {
    return recordView({ id: view.id(row) }, this.parts(view, row));
  }

  /** The row without its id. */
  parts(view: SegmentView, row: number): ShownPoint {
    if (this.withPayload.kind === 'none' && this.names === null && view.shardKey === null) return NOTHING;
    return {
      payload: this.payload(view, row),
      vector: this.names === null ? undefined : this.vector(view, row, this.names),
      shardKey: view.shardKey ?? undefined,
    };
  }

  private payload(view: SegmentView, row: number): Uint8Array | undefined {
    switch (this.withPayload.kind) {
      case 'none':
        return undefined;
      case 'all':
        return held(view, view.payloadText(row), PAYLOAD_BYTES);
      default:
        return held(
          view,
          Buffer.from(stringifyJson(payloadSelect(parseStored(view.payloadText(row)) as Payload, this.withPayload))),
          PAYLOAD_BYTES,
        );
    }
  }

  private vector(view: SegmentView, row: number, names: readonly string[]): VectorView {
    const vectors: { name: string; value: VectorValue }[] = [];
    for (const name of names) {
      const value = view.vectorOf(name, row);
      if (value === undefined) continue;
      if (value.kind === 'multi') held(view, value.values, NUMBER_BYTES * value.dim);
      vectors.push({ name, value });
    }
    const only = vectors[0];
    const unnamed = only !== undefined && vectors.length === 1 && only.name === DEFAULT_VECTOR;
    return unnamed ? { kind: 'single', value: only.value } : { kind: 'named', vectors };
  }
}

/** An object of a point, one of a vector with its array, and one of a payload with a short text. */
const POINT_BYTES = 128;
const VECTOR_BYTES = 256;
const NUMBER_BYTES = 4;
const PAYLOAD_BYTES = 256;
/** Numbers of a sparse vector, about: indices and values. */
const SPARSE_NUMBERS = 200;

const NOTHING: ShownPoint = { payload: undefined, vector: undefined, shardKey: undefined };

/** A part of a row, of which so many bytes are held with the others. Errors: `busy`. */
function held<Part extends ArrayBufferView>(view: SegmentView, part: Part, countedBytes: number): Part {
  if (part.byteLength > countedBytes) view.reader.deadline.hold(part.byteLength - countedBytes);
  return part;
}

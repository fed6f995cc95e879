/** What an answer shows of a row: payload and vectors as the request selects them. */

import { TroupeError } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';
import { type CollectionConfig, DEFAULT_VECTOR, isSingleVector, type VectorParams } from '../../protocols/model/collection.js';
import type { PayloadSelector, VectorSelector } from '../../protocols/model/filter.js';
import { payloadSelect } from '../../query/payload-edit.js';
import type { PointView, VectorView } from './encode.js';
import { payloadOf } from './filter-source.js';
import type { SegmentView } from './snapshot-view.js';

/** Shows rows of one collection as one request asks. */
export class PointViews {
  private readonly single: boolean;
  /** Names of the vectors to show; null: none, and no `vector` either. */
  private readonly names: readonly string[] | null;

  /** Errors: `wrongInput` for a vector name the collection does not have. */
  constructor(
    config: CollectionConfig,
    vectors: ReadonlyMap<string, VectorParams>,
    private readonly withPayload: PayloadSelector,
    withVector: VectorSelector,
  ) {
    this.single = isSingleVector(config.params.vectors);
    this.names = selectedNames(vectors, withVector);
  }

  /** The row without score or version. */
  record(view: SegmentView, row: number): PointView {
    return { id: view.id(row), ...this.parts(view, row) };
  }

  /** The row as a search found it. */
  scored(view: SegmentView, row: number, id: PointView['id'], version: number, score: number): PointView {
    return { id, version, score, ...this.parts(view, row) };
  }

  private parts(view: SegmentView, row: number): { payload?: Uint8Array; vector?: VectorView } {
    if (this.withPayload.kind === 'none' && this.names === null) return NOTHING;
    return { payload: this.payload(view, row), vector: this.names === null ? undefined : this.vector(view, row, this.names) };
  }

  private payload(view: SegmentView, row: number): Uint8Array | undefined {
    switch (this.withPayload.kind) {
      case 'none':
        return undefined;
      case 'all':
        return view.payloadText(row);
      default:
        return Buffer.from(stringifyJson(payloadSelect(payloadOf(view, row), this.withPayload)));
    }
  }

  private vector(view: SegmentView, row: number, names: readonly string[]): VectorView {
    const vectors: { name: string; values: Float32Array }[] = [];
    for (const name of names) {
      const values = view.vectorOf(name, row);
      if (values !== undefined) vectors.push({ name, values });
    }
    const only = vectors[0];
    return this.single && only !== undefined ? { kind: 'single', values: only.values } : { kind: 'named', vectors };
  }
}

const NOTHING = {};

/** The parameters of a vector. Errors: `wrongInput` when the collection has none of this name. */
export function vectorParams(vectors: ReadonlyMap<string, VectorParams>, name: string): VectorParams {
  const params = vectors.get(name);
  if (params === undefined) throw new TroupeError('wrongInput', `Not existing vector name error: ${name}`);
  return params;
}

function selectedNames(vectors: ReadonlyMap<string, VectorParams>, selector: VectorSelector): readonly string[] | null {
  switch (selector.kind) {
    case 'none':
      return null;
    case 'all':
      return vectors.size === 0 ? [DEFAULT_VECTOR] : [...vectors.keys()];
    case 'names':
      for (const name of selector.names) vectorParams(vectors, name);
      return [...new Set(selector.names)];
  }
}

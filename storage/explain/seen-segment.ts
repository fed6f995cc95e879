/** A segment as far as an explanation looks at it: a reader's view of one. */

import type { FieldSchema } from '../../protocols/model/collection.js';
import type { FieldIndex } from '../../query/filter/source.js';
import type { SegmentHandle } from '../segment/handle.js';
import type { VectorLayout } from '../segment/layout.js';
import type { Deadline } from '../threads/deadline.js';

export interface SeenSegment {
  readonly rows: number;
  readonly handle: Pick<SegmentHandle, 'id' | 'kind'>;
  /** Indexes of the collection. */
  readonly fields: ReadonlyMap<string, FieldSchema>;
  fieldIndex(field: string): FieldIndex | undefined;
  /** JSON text of the row's payload, UTF-8. */
  payloadText(row: number): Uint8Array;
  readonly reader: {
    readonly deadline: Deadline;
    /** What kernels did since the last call. */
    takeWork(): { readonly rows: number; readonly hops: number };
    vector(name: string): { readonly layout: VectorLayout } | undefined;
  };
}

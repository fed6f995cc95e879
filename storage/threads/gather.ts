/** Messages between the main thread and the gather thread. Calls are numbered within their request. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { Explanation } from '../../protocols/model/explanation.js';
import type { UnknownField } from '../../protocols/model/unknown-fields.js';
import type { GatherAsk, GatherPlace } from '../gather/access.js';
import type { RawRequest, ReadOperation } from './messages.js';

export type ToGather =
  /** Answered by `answer` or `error`, after calls. */
  | {
      readonly kind: 'gather';
      readonly id: number;
      readonly operation: ReadOperation;
      readonly request: RawRequest;
      readonly place: GatherPlace;
    }
  /** Answers to `scatter` and `locate`. */
  | { readonly kind: 'scattered'; readonly id: number; readonly call: number; readonly answers: readonly Uint8Array[] }
  | { readonly kind: 'located'; readonly id: number; readonly call: number; readonly place: GatherPlace }
  | { readonly kind: 'refused'; readonly id: number; readonly call: number; readonly error: ErrorFacts }
  /** No caller waits for the answer any more. */
  | { readonly kind: 'forget'; readonly id: number };

export type FromGather =
  | { readonly kind: 'ready' }
  | { readonly kind: 'scatter'; readonly id: number; readonly call: number; readonly ask: GatherAsk }
  | { readonly kind: 'locate'; readonly id: number; readonly call: number; readonly collection: string }
  /** unknownFields: of the request; absent if there are none. */
  | {
      readonly kind: 'answer';
      readonly id: number;
      readonly body: Uint8Array;
      readonly explanation?: Explanation;
      /** The same for the trace of the call. */
      readonly trace?: Explanation;
      /** Of a read that took long: see `ExplainRequest`. */
      readonly plan?: string;
      readonly unknownFields?: readonly UnknownField[];
    }
  | { readonly kind: 'error'; readonly id: number; readonly error: ErrorFacts };

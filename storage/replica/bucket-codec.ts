/**
 * Encodes the points of some buckets for another replica: rows in the form of an appendable segment's chunks, whatever segments they come
 * from, and payloads as text.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { LogTag } from '../../protocols/model/shard-log.js';
import { pack, unpack } from '../../protocols/pack.js';
import type { VectorPlan } from '../segment/layout.js';
import { isCurrent } from '../segment/plans.js';
import { passingRows, type SegmentRows } from './segment-rows.js';
import type { Location } from './transaction.js';

const FORMAT = 1;

/** Payloads go beside the chunk. */
const NO_PAYLOADS = { records: 0, bytes: 0 };

interface PackedBuckets {
  readonly format: number;
  readonly at: LogTag;
  readonly buckets: readonly number[];
  readonly plans: readonly VectorPlan[];
  readonly rows: number;
  readonly chunk: Uint8Array;
  /** u32 [rows]: the end of each row's payload. */
  readonly ends: Uint32Array;
  readonly payloads: Uint8Array;
}

/** All points of some buckets after an operation. */
export interface PassedBuckets {
  readonly at: LogTag;
  readonly buckets: ReadonlySet<number>;
  readonly segment: SegmentRows;
  payloadText(row: number): Uint8Array;
}

/** Encodes points into a new buffer. plans: the collection's vectors. locations: the points. */
export function encodeBuckets(
  at: LogTag,
  buckets: readonly number[],
  plans: readonly VectorPlan[],
  locations: readonly Location[],
  payloadText: (location: Location) => Uint8Array,
): Uint8Array {
  const roomy = withRoom(plans, locations);
  const segment = passingRows(roomy, locations.length);
  const ends = new Uint32Array(locations.length);
  const payloads: Uint8Array[] = [];
  let end = 0;
  locations.forEach((location, index) => {
    const { row, segment: source } = location;
    const added = segment.append(source.idAt(row), source.versions[row] as number);
    segment.copyVectors(added, source, row);
    const text = payloadText(location);
    payloads.push(text);
    end += text.length;
    ends[index] = end;
  });
  const chunk = segment.encodeChunk(0, locations.length, NO_PAYLOADS, 0, (bytes) => new Uint8Array(bytes));
  const packed: PackedBuckets = {
    format: FORMAT,
    at,
    buckets,
    plans: roomy,
    rows: locations.length,
    chunk,
    ends,
    payloads: Buffer.concat(payloads),
  };
  return new Uint8Array(pack(packed));
}

/**
 * Decodes what `encodeBuckets` wrote. plans: the collection's vectors on this node. Errors: `unavailable` if the collection does not have
 * one of the vectors yet; `wrongInput` for other bytes.
 */
export function decodeBuckets(bytes: Uint8Array, plans: readonly VectorPlan[]): PassedBuckets {
  const packed = unpack(bytes) as PackedBuckets;
  if (packed?.format !== FORMAT) throw new TroupeError('wrongInput', 'not points of buckets in a form that this release reads');
  const segment = passingRows(packed.plans, packed.rows);
  if (segment.loadChunk(packed.chunk) === null || segment.rows !== packed.rows)
    throw new TroupeError('wrongInput', 'the points of the buckets do not have the vectors that they say');
  for (const vector of segment.layout.vectors) {
    const plan = plans.find(({ name }) => name === vector.name);
    if (isCurrent(vector, plan) && plan?.element === vector.element) continue;
    throw new TroupeError('unavailable', `this node does not know the collection's vector \`${vector.name}\` yet`, { retryAfterMs: 100 });
  }
  const { at, buckets, ends, payloads } = packed;
  return {
    at,
    buckets: new Set(buckets),
    segment,
    payloadText: (row) => payloads.subarray(row === 0 ? 0 : (ends[row - 1] as number), ends[row] as number),
  };
}

function withRoom(plans: readonly VectorPlan[], locations: readonly Location[]): VectorPlan[] {
  const items = new Map<string, number>();
  for (const { row, segment } of locations)
    for (const [name, count] of segment.itemsOf(row)) items.set(name, (items.get(name) ?? 0) + count);
  return plans.map((plan) => (plan.kind === 'dense' ? plan : { ...plan, itemCapacity: items.get(plan.name) ?? 0 }));
}

/** Answers of gRPC, in the JSON form of Protocol Buffers, as results of REST; and the form in which both are compared. */

import { idOf, type Json, type Members, mapOf, maybe, membersOf, sent, shardKeyOf, text, vectorsOf } from './values.js';

export function pointOf(message: Json): { [key: string]: Json } {
  const { id, payload, vectors, order_value, shard_key, version, ...members } = message as Members;
  return sent({
    ...members,
    id: idOf(id as Json),
    version: maybe(version, Number),
    payload: maybe(payload, membersOf),
    vector: maybe(vectors, vectorsOf),
    shard_key: maybe(shard_key, shardKeyOf),
    order_value: maybe(order_value, orderValueOf),
  });
}

export function pointsOf(messages: Json | undefined): Json[] {
  return ((messages ?? []) as Json[]).map(pointOf);
}

export function batchOf(messages: Json): Json[][] {
  return (messages as Members[]).map(({ result }) => pointsOf(result));
}

export function groupsOf(message: Json): Json {
  const { groups } = message as { groups: Members[] };
  return {
    groups: groups.map(({ id, hits, lookup }) =>
      sent({ id: variantOf(id as Members), hits: pointsOf(hits), lookup: maybe(lookup, pointOf) }),
    ),
  };
}

export function scrollOf({ result, next_page_offset }: Members): Json {
  return sent({ points: pointsOf(result), next_page_offset: maybe(next_page_offset, idOf) });
}

export function updateOf(message: Json): Json {
  const { operation_id, status } = message as Members;
  return sent({ operation_id: maybe(operation_id, Number), status: text(status as Json) });
}

export function facetOf({ hits }: Members): Json {
  return { hits: (hits as Members[]).map(({ value, count }) => ({ value: variantOf(value as Members), count: Number(count) })) };
}

export function pairsOf(message: Json): Json {
  const { pairs } = message as { pairs: Members[] };
  return { pairs: pairs.map(({ a, b, score }) => ({ a: idOf(a as Json), b: idOf(b as Json), score: score as Json })) };
}

export function offsetsOf(message: Json): Json {
  const { ids, ...members } = message as { [key: string]: Json[] };
  return { ...mapOf(members, (list) => (list as Json[]).map(Number)), ids: (ids as Json[]).map(idOf) };
}

/** The value of a oneof of texts, truths and integers. */
function variantOf(message: Members): Json {
  const [[kind, value]] = Object.entries(message) as [[string, Json]];
  return kind === 'string_value' || kind === 'bool_value' ? value : Number(value);
}

function orderValueOf(message: Members): Json {
  const [[, value]] = Object.entries(message) as [[string, Json]];
  return Number(value);
}

/**
 * The form in which answers are compared: what is null, empty or not there is the same (gRPC cannot say the
 * difference), and numbers outside of payloads have the 32 bits that gRPC sends.
 */
export function compared(value: unknown, inPayload = false): unknown {
  if (typeof value === 'number') return inPayload || Number.isInteger(value) ? value : Math.fround(value);
  if (Array.isArray(value)) return value.map((item) => compared(item, inPayload));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => {
    const payload = inPayload || key === 'payload' || key === 'metadata';
    return [key, compared(member, payload)] as const;
  });
  return Object.fromEntries(inPayload ? entries : entries.filter(([, member]) => !isNothing(member)));
}

function isNothing(value: unknown): boolean {
  if (value === null || value === undefined) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

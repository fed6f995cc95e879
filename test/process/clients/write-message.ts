/** Writing requests of REST as messages of gRPC, in the JSON form of Protocol Buffers. */

import { filterMessage } from './filter-message.js';
import { idMessage, type Json, type Members, maybe, sent, shardKeysMessage, valueMap, vectorsMessage, word } from './values.js';

/** Upserts and updates of vectors. */
export function pointsMessage({ points, batch, update_filter, update_mode, shard_key, ...members }: Members): { [key: string]: Json } {
  return sent({
    ...members,
    points: maybe(points ?? maybe(batch, pointsOfBatch), (list: Members[]) => list.map(pointMessage)),
    update_filter: maybe(update_filter, filterMessage),
    update_mode: maybe(update_mode, word),
    shard_key_selector: maybe(shard_key, shardKeysMessage),
  });
}

function pointMessage({ id, vector, payload }: Members): Json {
  return sent({ id: idMessage(id as Json), vectors: maybe(vector, vectorsMessage), payload: maybe(payload, valueMap) });
}

/** Points of a request that has them by columns, which gRPC doesn't know. */
function pointsOfBatch({ ids, vectors, payloads }: Members): Json {
  const vectorOf = (at: number): Json => {
    if (Array.isArray(vectors)) return vectors[at] as Json;
    return Object.fromEntries(Object.entries(vectors as object).map(([name, list]) => [name, (list as Json[])[at] as Json]));
  };
  return (ids as Json[]).map((id, at) => ({ id, vector: vectorOf(at), payload: (payloads as Json[] | undefined)?.[at] ?? {} }));
}

/** Requests about the points of a list of ids or of a filter, which gRPC has in a field of the given name. */
export function writeMessage(selector: string): (args: Members) => { [key: string]: Json } {
  return ({ points, filter, vector, payload, shard_key, ...members }) => {
    const ids = maybe(points, (list: Json[]): Json => ({ points: { ids: list.map(idMessage) } }));
    return sent({
      ...members,
      [selector]: ids ?? maybe(filter, (of: Json): Json => ({ filter: filterMessage(of) })),
      vectors: maybe(vector, (names: Json): Json => ({ names })),
      payload: maybe(payload, valueMap),
      shard_key_selector: maybe(shard_key, shardKeysMessage),
    });
  };
}

/** Messages of the operations of a batch by their kind in REST: the kind in gRPC, and what makes it. */
const BATCH: { readonly [kind: string]: readonly [string, (args: Members) => Json] } = {
  upsert: ['upsert', pointsMessage],
  delete: ['delete_points', writeMessage('points')],
  set_payload: ['set_payload', writeMessage('points_selector')],
  overwrite_payload: ['overwrite_payload', writeMessage('points_selector')],
  delete_payload: ['delete_payload', writeMessage('points_selector')],
  clear_payload: ['clear_payload', writeMessage('points')],
  update_vectors: ['update_vectors', pointsMessage],
  delete_vectors: ['delete_vectors', writeMessage('points_selector')],
};

export function batchMessage(operations: Json): Json {
  return (operations as Members[]).map((operation) => {
    const [[kind, args]] = Object.entries(operation) as [[string, Members]];
    const [name, message] = BATCH[kind] as (typeof BATCH)[string];
    return { [name]: message(args) };
  });
}

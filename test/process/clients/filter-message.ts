/** Filters of REST as messages of gRPC, in the JSON form of Protocol Buffers. */

import { idMessage, type Json, type Members, maybe, sent } from './values.js';

export function filterMessage(filter: Json): Json {
  const { must, should, must_not, min_should } = filter as Members;
  return sent({
    must: maybe(must, conditions),
    should: maybe(should, conditions),
    must_not: maybe(must_not, conditions),
    min_should: maybe(min_should, (least: Members) => sent({ ...least, conditions: conditions(least.conditions as Json) })),
  });
}

/** One condition or a list of them. */
function conditions(list: Json): Json {
  return Array.isArray(list) ? list.map(conditionMessage) : [conditionMessage(list)];
}

export function conditionMessage(condition: Json): Json {
  const members = condition as Members;
  if (members.has_id !== undefined) return { has_id: { has_id: (members.has_id as Json[]).map(idMessage) } };
  if (members.has_vector !== undefined) return { has_vector: { has_vector: members.has_vector } };
  if (members.nested !== undefined) {
    const { key, filter } = members.nested as Members;
    return { nested: sent({ key, filter: maybe(filter, filterMessage) }) };
  }
  if (members.key !== undefined) return { field: fieldMessage(members) };
  if (members.is_empty !== undefined) return { is_empty: members.is_empty };
  if (members.is_null !== undefined) return { is_null: members.is_null };
  return { filter: filterMessage(condition) };
}

function fieldMessage({ match, range, ...members }: Members): Json {
  const texts = range !== undefined && Object.values(range as object).some((bound) => typeof bound === 'string');
  return sent({
    ...members,
    match: maybe(match, matchMessage),
    range: texts ? undefined : range,
    datetime_range: texts ? instants(range as Members) : undefined,
  });
}

function matchMessage({ value, any, except, ...texts }: Members): Json {
  if (any !== undefined) return listMessage('', any);
  if (except !== undefined) return listMessage('except_', except);
  switch (typeof value) {
    case 'string':
      return { keyword: value };
    case 'number':
      return { integer: value };
    case 'boolean':
      return { boolean: value };
    default:
      return texts as Json;
  }
}

function listMessage(prefix: string, list: Json): Json {
  if (typeof (list as Json[])[0] === 'number') return { [`${prefix}integers`]: { integers: list } };
  return { [`${prefix}keywords`]: { strings: list } };
}

/** Bounds as `Timestamp` in its JSON form. Without a zone they are UTC. */
function instants(range: Members): Json {
  return sent(
    Object.fromEntries(
      Object.entries(range).map(([bound, at]) => {
        const zoned = /Z$|[+-]\d\d:\d\d$|^\d{4}-\d\d-\d\d$/.test(String(at)) ? String(at) : `${at}Z`;
        return [bound, new Date(zoned).toISOString()];
      }),
    ),
  );
}

/**
 * Decodes requests for groups: of queries, and of the searches and recommendations of old.
 * Errors: `malformedBody`, `invalidValue`, `wrongInput`.
 */

import type { JsonValue } from '../model/payload.js';
import type { GroupsRequest, QueryNode, WithLookup } from '../model/query.js';
import { isObject, type JsonObject, wrongType } from './fields.js';
import { decodeKey } from './filter.js';
import { queryNode, searchNode } from './queries.js';
import { recommendNode } from './recommend.js';
import { isGiven, missingField, objectOf, positive, shardKeyIn, thresholdOf, vectorSelector } from './request-fields.js';
import type { RequestValue } from './request-value.js';
import { ALL, decodePayloadSelector, NONE } from './selectors.js';

const LIMIT_DEFAULT = 10;
const GROUP_SIZE_DEFAULT = 3;
/** How messages name the request. */
const PATH = 'search_group_request.group_request';

/** Body of `POST /points/query/groups`. */
export function decodeQueryGroups({ value, vectors }: RequestValue): GroupsRequest {
  const object = objectOf(value, 'QueryGroupsRequest');
  const groups = groupsOf(object, positive(object, 'group_size', PATH) ?? GROUP_SIZE_DEFAULT);
  return { ...queryNode(object, vectors, PATH, LIMIT_DEFAULT), ...groups };
}

/** Body of `POST /points/search/groups`. */
export function decodeSearchGroups({ value, vectors }: RequestValue): GroupsRequest {
  const object = objectOf(value, 'SearchGroupsRequest');
  return legacy(object, searchNode(object, vectors, PATH));
}

/** Body of `POST /points/recommend/groups`. */
export function decodeRecommendGroups({ value, vectors }: RequestValue): GroupsRequest {
  const object = objectOf(value, 'RecommendGroupsRequest');
  return legacy(object, { ...recommendNode(object, vectors, PATH), scoreThreshold: thresholdOf(object) });
}

function legacy(object: JsonObject, node: QueryNode): GroupsRequest {
  const size = positive(object, 'group_size', PATH);
  if (size === undefined) throw missingField('group_size');
  return { ...node, ...groupsOf(object, size) };
}

function groupsOf(object: JsonObject, groupSize: number): Omit<GroupsRequest, keyof QueryNode> {
  if (object.group_by === undefined) throw missingField('group_by');
  return {
    groupBy: decodeKey(object.group_by, 'group_by'),
    groupSize,
    withPayload: decodePayloadSelector(object.with_payload, NONE),
    withVector: vectorSelector(object, true),
    withLookup: lookupOf(object.with_lookup),
    ...shardKeyIn(object),
  };
}

/** A name of a collection, or an object with one. */
function lookupOf(value: JsonValue | undefined): WithLookup | null {
  if (!isGiven(value)) return null;
  const object: JsonObject = isObject(value) ? value : { collection: value as JsonValue };
  const { collection } = object;
  if (collection === undefined) throw missingField('collection');
  if (typeof collection !== 'string') throw wrongType('with_lookup', collection, 'a name of a collection');
  return {
    collection,
    withPayload: decodePayloadSelector(object.with_payload, ALL, 'with_lookup.with_payload'),
    withVector: vectorSelector(object, true),
  };
}

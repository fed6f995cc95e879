/** Which bodies the engine's operations take, to find the fields in them that the API does not have. */

import type { JsonValue } from '../../protocols/model/payload.js';
import type { UnknownFields } from '../../protocols/model/unknown-fields.js';
import type { WriteOperation } from '../../protocols/model/update.js';
import type { OperationName } from '../../protocols/openapi/operations.js';
import { findUnknownFields } from '../../protocols/openapi/unknown-fields.js';
import type { ReadOperation } from '../threads/messages.js';

const BODIES: Readonly<Record<ReadOperation | WriteOperation, OperationName>> = {
  retrieve: 'get_points',
  getPoint: 'get_point',
  scroll: 'scroll_points',
  count: 'count_points',
  query: 'query_points',
  queryBatch: 'query_batch_points',
  queryGroups: 'query_points_groups',
  search: 'search_points',
  searchBatch: 'search_batch_points',
  searchGroups: 'search_point_groups',
  recommend: 'recommend_points',
  recommendBatch: 'recommend_batch_points',
  recommendGroups: 'recommend_point_groups',
  discover: 'discover_points',
  discoverBatch: 'discover_batch_points',
  facet: 'facet',
  matrixPairs: 'search_matrix_pairs',
  matrixOffsets: 'search_matrix_offsets',
  upsertPoints: 'upsert_points',
  deletePoints: 'delete_points',
  setPayload: 'set_payload',
  overwritePayload: 'overwrite_payload',
  deletePayload: 'delete_payload',
  clearPayload: 'clear_payload',
  batchUpdate: 'batch_update',
  updateVectors: 'update_vectors',
  deleteVectors: 'delete_vectors',
  createFieldIndex: 'create_field_index',
  deleteFieldIndex: 'delete_field_index',
};

/** As `findUnknownFields`. body: vectors may have been taken out. */
export function findUnknownIn(operation: ReadOperation | WriteOperation, body: JsonValue, into: UnknownFields): void {
  findUnknownFields(BODIES[operation], body, into);
}

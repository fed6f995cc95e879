/** REST forms of writing requests. */

import type { JsonValue } from '../model/payload.js';
import { chosenMember, type MessageFields, object, type RestForms } from './form.js';

/** Operations of a batch as REST names them. */
const BATCH_OPERATIONS: Readonly<Record<string, string>> = {
  delete_points: 'delete',
  delete_deprecated: 'delete',
  clear_payload_deprecated: 'clear_payload',
};

export const POINT_FORMS: RestForms = {
  PointStruct: ({ id, vectors, payload }) => ({ id, vector: vectors, payload }) as JsonValue,
  PointVectors: ({ id, vectors }) => object({ id, vector: vectors }),
  PointsSelector: (fields) => object({ points: fields.points, filter: fields.filter }),

  UpsertPoints: pointsForm,
  'PointsUpdateOperation.PointStructList': pointsForm,
  UpdatePointVectors: pointsForm,
  'PointsUpdateOperation.UpdateVectors': pointsForm,
  DeletePoints: (fields) => selected(fields, fields.points),
  'PointsUpdateOperation.DeletePoints': (fields) => selected(fields, fields.points),
  ClearPayloadPoints: (fields) => selected(fields, fields.points),
  'PointsUpdateOperation.ClearPayload': (fields) => selected(fields, fields.points),
  DeletePointVectors: deleteVectorsForm,
  'PointsUpdateOperation.DeleteVectors': deleteVectorsForm,
  SetPayloadPoints: payloadForm,
  'PointsUpdateOperation.SetPayload': payloadForm,
  'PointsUpdateOperation.OverwritePayload': payloadForm,
  DeletePayloadPoints: deletePayloadForm,
  'PointsUpdateOperation.DeletePayload': deletePayloadForm,
  UpdateBatchPoints: (fields) => ({ operations: fields.operations ?? [] }),
  PointsUpdateOperation: (fields) => {
    const [kind, value] = chosenMember(fields, 'the kind of an operation');
    return { [BATCH_OPERATIONS[kind] ?? kind]: value };
  },

  CreateFieldIndexCollection: ({ field_name, field_type, field_index_params }) =>
    object({ field_name, field_schema: field_index_params ?? field_type }),
  CreateVectorNameRequest: ({ dense_config, sparse_config }) => object({ dense: dense_config, sparse: sparse_config }),
};

function pointsForm({ points, update_filter, update_mode, shard_key_selector }: MessageFields): JsonValue {
  return object({ points: points ?? [], update_filter, update_mode, shard_key: shard_key_selector });
}

function payloadForm(fields: MessageFields): JsonValue {
  const { payload, key } = fields;
  return selected(fields, fields.points_selector, { payload: payload ?? {}, key });
}

function deletePayloadForm(fields: MessageFields): JsonValue {
  return selected(fields, fields.points_selector, { keys: fields.keys ?? [] });
}

function deleteVectorsForm(fields: MessageFields): JsonValue {
  return selected(fields, fields.points_selector, { vector: fields.vectors ?? [] });
}

/** Members beside those of the selector: points or a filter. */
function selected({ shard_key_selector }: MessageFields, selector: JsonValue | undefined, members: MessageFields = {}): JsonValue {
  return object({ ...members, ...((selector ?? {}) as MessageFields), shard_key: shard_key_selector });
}

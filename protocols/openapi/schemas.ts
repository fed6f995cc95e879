/** Every named schema of the API. */

import { CLUSTER_SCHEMAS } from './cluster.js';
import { COLLECTION_SCHEMAS } from './collections.js';
import { COMMON_SCHEMAS } from './common.js';
import { POINT_SCHEMAS } from './points.js';
import { QUERY_SCHEMAS } from './queries.js';
import { SNAPSHOT_SCHEMAS } from './snapshots.js';

export const SCHEMAS = {
  ...COMMON_SCHEMAS,
  ...COLLECTION_SCHEMAS,
  ...POINT_SCHEMAS,
  ...QUERY_SCHEMAS,
  ...CLUSTER_SCHEMAS,
  ...SNAPSHOT_SCHEMAS,
};

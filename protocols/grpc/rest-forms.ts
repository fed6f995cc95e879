/** What REST has in the place of each gRPC message. A message that is not listed looks the same there. */

import type { RestForms } from './form.js';
import { COLLECTION_FORMS } from './forms-collections.js';
import { COMMON_FORMS } from './forms-common.js';
import { POINT_FORMS } from './forms-points.js';
import { QUERY_FORMS } from './forms-queries.js';

export const REST_FORMS: RestForms = { ...COMMON_FORMS, ...QUERY_FORMS, ...POINT_FORMS, ...COLLECTION_FORMS };

/** The grant for the collection that a request asks for. */

import { TroupeError } from '../../protocols/errors.js';
import type { Grant, Grants } from '../../protocols/model/scope.js';

/** collection: as the request names it. Errors: `forbidden` without one: the door has let it through, and nothing depends on that here. */
export function ownGrant(grants: Grants, collection: string | undefined): Grant {
  const grant = collection === undefined ? undefined : grants.get(collection);
  if (grant === undefined) throw new TroupeError('forbidden', `Access to collection ${collection ?? ''} is required`);
  return grant;
}

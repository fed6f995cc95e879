/** State of a replication actor: the core's, under the name of its role. */

import type { ReplicationState, Role } from '../../cluster/replication/state.js';

export interface ReplicationActorState {
  readonly kind: Role['kind'];
  readonly core: ReplicationState;
}

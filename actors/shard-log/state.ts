/** State of a replication actor: the state of `cluster/replication`, under the name of its role. */

import type { ReplicationRole, ReplicationState } from '../../cluster/replication/state.js';

export interface ReplicationActorState {
  readonly kind: ReplicationRole['kind'];
  readonly core: ReplicationState;
}

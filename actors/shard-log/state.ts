/** State of a replication actor: the decisions' own, under the name of its role. */

import type { ReplicationState, Role } from '../../cluster/replication/state.js';

export interface ReplicationActorState {
  readonly kind: Role['kind'];
  readonly core: ReplicationState;
}

export function named(core: ReplicationState): ReplicationActorState {
  return { kind: core.role.kind, core };
}

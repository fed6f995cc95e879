/** Decides which commands may take a shard's lead from a peer, once they are agreed on (Log-L9). */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { ClusterCommand } from '../state/commands.js';

/** Whether a command may take the lead of a shard from `peer`. True for kinds that are not examined. */
export function mayTakeLeads(command: ClusterCommand, peer: PeerId): boolean {
  switch (command.kind) {
    case 'setReplicaStates':
      return command.changes.some(({ peerId }) => peerId === peer);
    case 'noop':
    case 'changeAliases':
    case 'createCollection':
    case 'updateCollection':
    case 'deleteCollection':
    case 'createShardKey':
    case 'setAutoReplication':
    case 'setPayloadIndex':
    case 'setMetadata':
    // Elects leaders only for shards that have none.
    case 'electLeaders':
      return false;
    default:
      return true;
  }
}

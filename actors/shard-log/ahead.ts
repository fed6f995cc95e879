/** What a node knows of acknowledgements that it has given alone (Log-L9): while others may lack what it has, nobody else may lead. */

import type { NodeView } from '../context/view.js';
import type { Assignments } from './assignments.js';

/** Whether something that this node leads may have been acknowledged by it alone, in this process or an earlier one. */
export function hasGoneAlone({ agreed, peerId }: Pick<Assignments, 'agreed' | 'peerId'>, view: Pick<NodeView, 'collections'>): boolean {
  // Of shards and replicas that are not known yet nobody can tell.
  if (agreed === null) return true;
  for (const [name, { shards }] of agreed.collections) {
    const entry = view.collections.get(name);
    for (const [shardId, { leader }] of shards)
      if (leader === peerId && entry?.replications.get(shardId)?.mayBeAhead() !== false) return true;
  }
  return false;
}

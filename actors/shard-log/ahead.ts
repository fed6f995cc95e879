/** Acknowledgements that a node has given alone (Log-L9): while other replicas may lack something, no other replica may lead. */

import type { NodeView } from '../context/view.js';
import type { Assignments } from './assignments.js';

/** Whether a write may have been acknowledged by this node alone, in this process or an earlier one. */
export function hasGoneAlone({ agreed, peerId }: Pick<Assignments, 'agreed' | 'peerId'>, view: Pick<NodeView, 'collections'>): boolean {
  // Until shards and replicas are known, the answer is yes.
  if (agreed === null) return true;
  for (const [name, { shards }] of agreed.collections) {
    const entry = view.collections.get(name);
    for (const [shardId, { leader }] of shards)
      if (leader === peerId && entry?.replications.get(shardId)?.mayBeAhead() !== false) return true;
  }
  return false;
}
